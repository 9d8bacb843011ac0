//! The pages as packages install them.

use std::process::Command;

use super::page::root;

#[test]
fn links_of_installed_pages_lead_to_installed_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |script: &str, arguments: &[&str]| {
        let mut command = Command::new(root().join(script));
        command.args(arguments).env_remove("VCC_LAB").env_remove("VCC_GUEST");
        command.env("VCC", env!("CARGO_BIN_EXE_vcc")).env("PREFIX", "/usr");
        let output = command.env("DESTDIR", directory.path()).output().expect("the script");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("scripts/install.sh", &["install"]);
    let pages = directory.path().join("usr/share/doc/vcc");
    run("scripts/test/links.sh", &[pages.to_str().expect("UTF-8")]);
    let read = |page: &str| std::fs::read_to_string(pages.join(page)).expect("a page");
    assert!(read("docs/contributing.md").contains("\n1. `engine/vcc.h`: the vocabulary"));
    assert!(read("docs/README.md").contains("](policy.md)"), "links that lead somewhere stay");
    // It is not taken for a link.
    assert!(read("docs/policy.md").contains("[[ports]]\n"));
}
