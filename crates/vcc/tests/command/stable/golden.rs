//! What is promised, as lines of a file. A line that does not hold any more breaks somebody's script; a new
//! one only has to be written down.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// With this variable a test adds what is new. It never removes a line.
const WRITE: &str = "VCC_WRITE_DOCS";

/// Lines of `golden/NAME.txt`.
pub struct Golden {
    path: PathBuf,
    lines: BTreeSet<String>,
}

impl Golden {
    pub fn read(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/stable/golden");
        let path = directory.join(format!("{name}.txt"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        Self { path, lines: text.lines().map(str::to_owned).collect() }
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// `kept`: the lines that still hold. `found`: all that there is now.
    #[track_caller]
    pub fn assert(&self, kept: impl Fn(&str) -> bool, found: impl IntoIterator<Item = String>) {
        let broken: Vec<&str> = self.lines().filter(|line| !kept(line)).collect();
        assert!(
            broken.is_empty(),
            "{broken:#?} no longer hold(s), and docs/stability.md promises them: keep them; or, if that \
             is what the next version is for, tell it in CHANGELOG.md and remove these lines from {}",
            self.path.display()
        );
        let new: BTreeSet<String> =
            found.into_iter().filter(|line| !self.lines.contains(line)).collect();
        if new.is_empty() {
            return;
        }
        assert!(
            env::var_os(WRITE).is_some(),
            "{new:#?} are new, and stable from the next release on: `{WRITE}=1 cargo test -p vcc --test \
             command stable` adds them to {}",
            self.path.display()
        );
        let all: Vec<&str> = self.lines().chain(new.iter().map(String::as_str)).collect();
        let sorted: BTreeSet<&str> = all.into_iter().collect();
        let text: String = sorted.into_iter().map(|line| format!("{line}\n")).collect();
        fs::write(&self.path, text).expect("written");
    }

    /// Each line is one of those found.
    #[track_caller]
    pub fn assert_all(&self, found: &BTreeSet<String>) {
        self.assert(|line| found.contains(line), found.iter().cloned());
    }
}

#[test]
fn a_line_that_no_longer_holds_is_reported_and_so_is_a_new_one() {
    let lines = ["kept", "lost"].map(str::to_owned).into();
    let golden = Golden { path: "FILE".into(), lines };
    let found = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    golden.assert_all(&found(&["kept", "lost"]));
    let output = |names: &[&str]| {
        let found = found(names);
        let golden = std::panic::AssertUnwindSafe(&golden);
        let panicked = std::panic::catch_unwind(move || golden.assert_all(&found));
        *panicked.expect_err("a complaint").downcast::<String>().expect("words")
    };
    assert!(output(&["kept"]).contains("\"lost\""), "{}", output(&["kept"]));
    if env::var_os(WRITE).is_none() {
        assert!(output(&["kept", "lost", "more"]).contains("\"more\""));
    }
}
