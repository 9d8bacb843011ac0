//! "One file and one line": with the example of docs/congestion-control.md added to a copy of the
//! engine, the policies' schema and the documentation have the new underlay. So do the options of
//! `vcc attach` and the lab, which read the same list of keys.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        copy(&path, &to.join(path.file_name().unwrap()));
    }
}

#[test]
fn schema_and_documentation_follow_the_list_of_underlays() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = target.join("promise-of-policies");
    let _ = fs::remove_dir_all(&dir);
    for part in ["engine", "datapath", "docs", "Cargo.toml", "Cargo.lock"] {
        copy(&root().join(part), &dir.join(part));
    }
    for crate_name in ["vcc-engine", "vcc-policy"] {
        let within = Path::new("crates").join(crate_name);
        for part in
            ["Cargo.toml", "src", "examples", "build.rs", "native.c", "frames.c", "frames.h"]
        {
            let from = root().join(&within).join(part);
            if from.exists() {
                copy(&from, &dir.join(&within).join(part));
            }
        }
        // Crates that only tests depend on are not there.
        let manifest = dir.join(&within).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let product = text.split("[dev-dependencies]").next().unwrap();
        fs::write(manifest, product).unwrap();
    }

    // Cargo takes packages of the same name, version and place in the workspace for the same.
    let workspace = dir.join("Cargo.toml");
    let text = fs::read_to_string(&workspace).unwrap();
    let other = text.replacen("version = \"", "version = \"9", 1).replace(", \"fuzz\"]", "]");
    fs::write(workspace, other).unwrap();

    let page = fs::read_to_string(root().join("docs/congestion-control.md")).unwrap();
    let block = |nth| page.split("```c\n").nth(nth).unwrap().split("```").next().unwrap();
    fs::write(dir.join("engine/cc/gentle.h"), block(1)).unwrap();
    let list = dir.join("engine/cc/list.h");
    fs::write(&list, fs::read_to_string(&list).unwrap() + block(2)).unwrap();

    // Cargo waits for another one that uses the directory.
    let output = Command::new("timeout")
        .arg("1200")
        .arg(env::var_os("CARGO").expect("cargo runs tests"))
        .args(["run", "--quiet", "--offline", "--profile", "test"])
        .args(["--package", "vcc-policy", "--example", "docs"])
        // Their dependencies are built already.
        .arg("--target-dir")
        .arg(target.parent().unwrap())
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
    assert!(read("docs/policy.schema.json").contains("\"gentle\""));
    assert!(read("docs/policy.md").contains("`\"swift\"`, `\"gentle\"`"));
    let about = "| `gentle` | Reno with a reduction by an eighth | controls the window, ECN on the fabric |";
    assert!(read("docs/congestion-control.md").contains(about));
}
