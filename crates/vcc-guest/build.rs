//! Compiles the congestion controls of `guest/` to BPF.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use vcc_clang::Clang;

fn main() {
    if let Err(why) = build() {
        eprintln!("vcc-guest: {why}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let guest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../guest");
    println!("cargo::rerun-if-changed={}", guest.display());
    let clang = Clang::for_build_script()?;
    let entries = fs::read_dir(&guest).map_err(|e| format!("{}: {e}", guest.display()))?;
    for entry in entries {
        let source = entry.map_err(|e| format!("{}: {e}", guest.display()))?.path();
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        if let Some(stem) = name.strip_suffix(".bpf.c") {
            clang.compile(&source, &[], &out.join(format!("{stem}.bpf.o")))?;
        }
    }
    Ok(())
}
