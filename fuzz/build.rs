//! Compiles the laws that the proofs claim of one call, for the engine's target to assert.

use std::path::PathBuf;

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("..");
    for file in ["laws.c", "../proofs/laws.h", "../engine", "../engine/cc"] {
        println!("cargo::rerun-if-changed={file}");
    }
    cc::Build::new()
        .file("laws.c")
        .include(root.join("engine"))
        .include(root.join("datapath"))
        .std("c11")
        // A broken law panics in Rust and unwinds through C to its caller.
        .flags(["-ffreestanding", "-fexceptions", "-Wall", "-Wextra", "-Werror"])
        .compile("vcc_fuzz_laws");
}
