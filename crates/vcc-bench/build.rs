//! Compiles the BPF objects that the crate embeds.

use std::path::PathBuf;

use vcc_clang::{Clang, variable};

fn main() {
    if let Err(why) = build() {
        eprintln!("vcc-bench: {why}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let crate_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let root = crate_dir.join("../..");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let engine = root.join("engine");
    let datapath = root.join("datapath");
    let measure = crate_dir.join("src/measure");
    for input in [&engine, &datapath, &measure] {
        println!("cargo::rerun-if-changed={}", input.display());
    }

    let clang = Clang::for_build_script()?;
    for (source, object) in [
        ("advance.bpf.c", "advance.bpf.o"),
        ("rewriter.bpf.c", "rewriter.bpf.o"),
        ("connections/vary.bpf.c", "vary.bpf.o"),
    ] {
        clang.compile(&measure.join(source), &[&engine, &datapath], &out.join(object))?;
    }
    Ok(())
}
