//! Embeds the engine's headers, which every underlay includes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let engine = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../engine");
    let mut list = String::from("&[\n");
    for directory in ["", "cc"] {
        println!("cargo::rerun-if-changed={}", engine.join(directory).display());
        for entry in fs::read_dir(engine.join(directory))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "h") {
                println!("cargo::rerun-if-changed={}", path.display());
                let name = Path::new(directory).join(path.file_name().expect("a file"));
                writeln!(list, "({name:?}, include_str!({:?})),", path.canonicalize()?)
                    .expect("a string takes all");
            }
        }
    }
    list.push(']');
    fs::write(
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("headers.rs"),
        list,
    )
}
