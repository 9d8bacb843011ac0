//! "One file and one line": adds the example of docs/congestion-control.md as documented.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const MAIN: &str = r#"
#include "engine.h"
#include <stdio.h>

int main(void)
{
	struct vcc_cc_state cc = {};
	struct vcc_params params = {};

	cc_init(UNDERLAY_gentle, &cc, 80);
	cc_on_congestion(UNDERLAY_gentle, &cc, CONGESTION_ECN, &params);
	printf("%s %u\n", cc_name(UNDERLAY_gentle), cc.ssthresh_segs);
	return 0;
}
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page's C blocks, in order.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```c\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn clang() -> String {
    let known = ["clang-16", "clang-19", "clang-14", "clang"].map(String::from);
    env::var("CLANG")
        .into_iter()
        .chain(known)
        .find(|name| Command::new(name).arg("--version").output().is_ok())
        .expect("clang is installed by `make deps`")
}

#[test]
fn a_new_underlay_is_one_file_and_one_line() {
    let page = fs::read_to_string(root().join("docs/congestion-control.md")).unwrap();
    let [file, line] = blocks(&page)[..] else { panic!("the page shows a file and a line") };

    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("promise");
    let _ = fs::remove_dir_all(&dir);
    for part in ["engine", "datapath"] {
        copy(&root().join(part), &dir.join(part));
    }
    fs::write(dir.join("engine/cc/gentle.h"), file).unwrap();
    let list = dir.join("engine/cc/list.h");
    fs::write(&list, fs::read_to_string(&list).unwrap() + line).unwrap();

    let (source, binary) = (dir.join("main.c"), dir.join("main"));
    fs::write(&source, MAIN).unwrap();
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(dir.join("engine"))
        .arg(&source)
        .arg("-o")
        .arg(&binary));
    assert_eq!(run(&mut Command::new(&binary)), "gentle 70\n");

    let multiarch = format!("/usr/include/{}-linux-gnu", env::consts::ARCH);
    run(Command::new(clang())
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-ffreestanding"])
        .args(["-Wall", "-Wextra", "-Werror", "-I", &multiarch, "-I"])
        .arg(dir.join("engine"))
        .arg("-c")
        .arg(dir.join("datapath/vcc.bpf.c"))
        .arg("-o")
        .arg(dir.join("vcc.bpf.o")));
}
