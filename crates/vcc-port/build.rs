//! Compiles the BPF objects that the crate embeds.

use std::path::PathBuf;

use vcc_clang::{Clang, variable};

fn main() {
    if let Err(why) = build() {
        eprintln!("vcc-port: {why}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let crate_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let root = crate_dir.join("../..");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let engine = root.join("engine");
    let datapath = root.join("datapath");
    let timers = crate_dir.join("src/timers/probe.bpf.c");
    let watch = crate_dir.join("tests/transfer/watch.bpf.c");
    for input in [&engine, &datapath, &watch, &timers] {
        println!("cargo::rerun-if-changed={}", input.display());
    }

    let clang = Clang::for_build_script()?;
    let sources = [
        (datapath.join("vcc.bpf.c"), "vcc.bpf.o"),
        (datapath.join("port.bpf.c"), "port.bpf.o"),
        (datapath.join("lanes.bpf.c"), "lanes.bpf.o"),
        (datapath.join("detour.bpf.c"), "detour.bpf.o"),
        (datapath.join("record.bpf.c"), "record.bpf.o"),
        (watch, "watch.bpf.o"),
        (timers, "timers.bpf.o"),
    ];
    for (source, object) in sources {
        clang.compile(&source, &[&engine, &datapath], &out.join(object))?;
    }
    Ok(())
}
