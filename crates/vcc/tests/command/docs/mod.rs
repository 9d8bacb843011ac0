//! Types the lines of the documentation that a reader is to type: each line of each ```` ```sh ```` block of README.md,
//! docs/*.md and experiments/README.md. One test per page.
//!
//! The lines of a page run in order, on a host of the page's own ([`Host`]) in its own namespaces: with guests
//! behind `veth3`, `tap0` and `veth7`, connections of the first to 198.51.100.9:80 and :5001, and a directory with
//! `policy.toml`. The guests are attached beforehand unless the page does that itself. The connections are
//! opened again after each `vcc attach`, which has to see their SYNs, and closed before a line that waits for
//! their end. A line has to succeed. A block behind "the file `NAME`:" is a file of that directory.
//!
//! A new page needs its line in [`pages`]. Beyond that:
//! - a line that runs until Ctrl-C: its first words to `ENDLESS` in host.rs;
//! - a word that stands for the reader's own: to `MEANT`;
//! - a device, file or connection: to [`Host::with`];
//! - a daemon that runs although none of the lines starts it: to `BESIDE`;
//! - a line that takes too long, or that changes the machine: to [`ELSEWHERE`].

mod architecture;
mod elsewhere;
mod host;
mod installed;
mod links;
mod page;
mod phrases;
mod proofs;
mod results;
mod troubleshooting;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::thread;

use vcc_testing::{EndOnDrop, can_attach, isolated};

use elsewhere::ELSEWHERE;
use host::{BESIDE, Host};
use page::Page;

macro_rules! pages {
    ($($test:ident: $name:literal,)+) => {
        const TESTED: &[&str] = &[$($name),+];

        $(
            #[test]
            fn $test() {
                every_line_works($name);
            }
        )+
    };
}

pages! {
    readme: "README.md",
    accecn: "docs/accecn.md",
    architecture: "docs/architecture.md",
    captures: "docs/captures.md",
    coexistence: "docs/coexistence.md",
    congestion_control: "docs/congestion-control.md",
    contributing: "docs/contributing.md",
    driver_domain: "docs/driver-domain.md",
    enforcement: "docs/enforcement.md",
    experiments: "experiments/README.md",
    evidence: "docs/evidence.md",
    feedback: "docs/feedback.md",
    getting_started: "docs/getting-started.md",
    glossary: "docs/glossary.md",
    guests: "docs/guests.md",
    index: "docs/README.md",
    kernels: "docs/kernels.md",
    kubernetes: "docs/kubernetes.md",
    laws: "docs/laws.md",
    limits: "docs/limits.md",
    metrics: "docs/metrics.md",
    migration: "docs/migration.md",
    operating: "docs/operating.md",
    packaging: "docs/packaging.md",
    performance: "docs/performance.md",
    platforms: "docs/platforms.md",
    policy: "docs/policy.md",
    proofs: "docs/proofs.md",
    pvtcp: "docs/pvtcp.md",
    records: "docs/records.md",
    results: "docs/results.md",
    seeing: "docs/seeing.md",
    stability: "docs/stability.md",
    testing: "docs/testing.md",
    translation: "docs/translation.md",
    troubleshooting: "docs/troubleshooting.md",
    underlays: "docs/underlays.md",
    vcc_guest: "docs/vcc-guest.md",
    virtual_time: "docs/virtual-time.md",
}

#[track_caller]
fn every_line_works(name: &str) {
    let page = Page::read(name);
    let elsewhere: HashSet<&str> = ELSEWHERE.iter().map(|(line, _)| *line).collect();
    let mut lines = page.lines.iter().filter(|line| !elsewhere.contains(line.as_str())).peekable();
    if lines.peek().is_none() || !can_attach() {
        return;
    }
    let failures: Vec<String> = isolated(|| {
        let host = Host::with(&page);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = EndOnDrop(&done);
            scope.spawn(|| host.talk(&done));
            let failed =
                |line: &String| host.run(line).err().map(|what| format!("`{line}`: {what}"));
            lines.filter_map(failed).collect()
        })
    });
    assert!(failures.is_empty(), "{name}:\n{}", failures.join("\n"));
}

#[test]
fn every_page_has_its_test() {
    let mut tested = TESTED.to_vec();
    tested.sort_unstable();
    assert_eq!(page::names(), tested, "pages that there are, and pages in `pages!`");
}

#[test]
fn lines_that_are_run_elsewhere_are_in_the_documentation() {
    let pages = Page::all();
    let all: HashSet<&str> =
        pages.iter().flat_map(|page| page.lines.iter().map(String::as_str)).collect();
    assert!(all.len() > 30, "the blocks are found: {all:?}");
    for (line, _) in ELSEWHERE {
        assert!(all.contains(line), "no page says `{line}`: it needs no exception");
    }
    for name in BESIDE {
        assert!(pages.iter().any(|page| page.name == *name), "there is no page {name}");
    }
}

#[test]
fn blocks_are_taken_apart() {
    let text = "a\n```sh\none   # said of it\n# of nothing\n\ntwo \\\n    --more\n```\n```toml\nno = 1\n```\n";
    assert_eq!(page::lines("page", text), ["one", "two --more"]);
    let text = "This is the file `a.toml`:\n\n```toml\nyes = 1\n```\n\nThis is `b.h` of it:\n\n```c\nint b;\n```\n";
    assert_eq!(page::files(text), [("a.toml".to_owned(), "yes = 1\n".to_owned())]);
}
