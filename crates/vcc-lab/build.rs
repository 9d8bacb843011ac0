//! Puts every experiment file into the binary.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../experiments");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<_> = fs::read_dir(&directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut code = String::from("&[\n");
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy();
        let path = path.canonicalize()?;
        writeln!(code, "({name:?}, include_str!({path:?})),").unwrap();
    }
    code.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("experiments.rs"), code)
}
