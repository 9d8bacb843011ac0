//! Puts into the binary every experiment file, digests of the sources that figures depend on, and the
//! program that guests with a kernel of their own run.

#[path = "src/sources/code.rs"]
mod code;
#[path = "../vcc-results/src/digest.rs"]
mod digest;
#[path = "src/sources/kinds.rs"]
mod kinds;
#[path = "src/sources/workspace.rs"]
mod workspace;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use vcc_clang::Clang;
use workspace::Workspace;

fn main() {
    if let Err(why) = build() {
        eprintln!("vcc-lab: {why}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    embed_experiments(&package.join("../../experiments"), &out)?;
    embed_sources(&package.join("../.."), &out)?;
    build_agent(&package.join("../vcc-traffic"), &out)?;
    build_for_tests(&package, &out)
}

/// Compiles the arithmetic of the congestion controls natively, and a program that reads the state of sockets to BPF.
fn build_for_tests(package: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let guest = package.join("../../guest");
    let sender_state = package.join("tests/live/wire/sender_state.bpf.c");
    let arithmetic = package.join("tests/arithmetic/native.c");
    for input in [&guest, &sender_state, &arithmetic] {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    let clang = Clang::for_build_script()?;
    clang.compile(&sender_state, &[&guest], &out.join("sender_state.bpf.o"))?;
    cc::Build::new()
        .file(&arithmetic)
        .include(&guest)
        .std("c11")
        .flags(["-Wall", "-Wextra", "-Werror"])
        .cargo_metadata(false)
        .compile("vcc_guest_arithmetic");
    let archive = out.join("libvcc_guest_arithmetic.a");
    println!("cargo::rustc-link-arg-tests={}", archive.display());
    Ok(())
}

/// Statically linked, because a guest has no libraries.
fn build_agent(package: &Path, out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", package.display());
    println!("cargo::rerun-if-changed={}", package.join("../../Cargo.lock").display());
    let target = env::var("TARGET").unwrap();
    // OUT_DIR is `PROFILE/build/PACKAGE-HASH/out` below the target directory. All profiles share one
    // agent, which is always built for release; cargo locks its directory, so that they wait for each
    // other.
    let directory = out.ancestors().nth(4).unwrap_or(out).join("guest-agent");
    let flags = "-C target-feature=+crt-static -C debuginfo=0 -C strip=symbols".to_owned();
    let status = Command::new(env::var("CARGO").unwrap())
        .args(["build", "--quiet", "--release", "--bin", "vcc-agent", "--target", &target])
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&directory)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("RUSTFLAGS", flags + &remapped())
        .status()?;
    if !status.success() {
        return Err(io::Error::other("the guests' program could not be built, as said above"));
    }
    fs::copy(directory.join(target).join("release/vcc-agent"), out.join("vcc-agent")).map(drop)
}

/// The path prefixes that the flags of this build remap: a build may have to be the same in any directory.
fn remapped() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let of_paths = flags.split('\u{1f}').filter(|flag| flag.starts_with("--remap-path-prefix="));
    of_paths.map(|flag| format!(" {flag}")).collect()
}

fn embed_experiments(directory: &Path, out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<_> = fs::read_dir(directory)?
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
    fs::write(out.join("experiments.rs"), code)
}

/// Of each kind of measurement, the parts that it depends on and their digests.
fn embed_sources(root: &Path, out: &Path) -> io::Result<()> {
    let mut workspace = Workspace::new(root);
    let mut code = String::from("&[\n");
    for kind in kinds::KINDS {
        let parts = workspace.parts(kind)?;
        writeln!(code, "({:?}, &{parts:?}),", kind.name).unwrap();
    }
    code.push(']');
    for input in workspace.inputs.iter().filter(|input| input.exists()) {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    fs::write(out.join("sources.rs"), code)
}
