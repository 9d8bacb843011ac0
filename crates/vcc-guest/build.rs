//! Compiles the guests' congestion controls to BPF, and their arithmetic natively for the tests.

use std::fs;
use std::path::{Path, PathBuf};

use vcc_clang::{Clang, variable};

fn main() {
    if let Err(why) = build() {
        eprintln!("vcc-guest: {why}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let crate_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let guest = crate_dir.join("../../guest");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let look = crate_dir.join("tests/live/wire/look.bpf.c");
    let arithmetic = crate_dir.join("tests/arithmetic/native.c");
    for input in [&guest, &look, &arithmetic] {
        println!("cargo::rerun-if-changed={}", input.display());
    }

    let clang = Clang::for_build_script()?;
    let entries = fs::read_dir(&guest).map_err(|e| format!("{}: {e}", guest.display()))?;
    for entry in entries {
        let source = entry.map_err(|e| format!("{}: {e}", guest.display()))?.path();
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        if let Some(stem) = name.strip_suffix(".bpf.c") {
            clang.compile(&source, &[], &out.join(format!("{stem}.bpf.o")))?;
        }
    }
    clang.compile(&look, &[&guest], &out.join("look.bpf.o"))?;
    compile_natively(&arithmetic, &guest, &out);
    Ok(())
}

/// Compiles the congestion controls' arithmetic for the tests.
fn compile_natively(source: &Path, include: &Path, out: &Path) {
    cc::Build::new()
        .file(source)
        .include(include)
        .std("c11")
        .flags(["-Wall", "-Wextra", "-Werror"])
        .cargo_metadata(false)
        .compile("vcc_guest_arithmetic");
    let archive = out.join("libvcc_guest_arithmetic.a");
    println!("cargo::rustc-link-arg-tests={}", archive.display());
}
