//! Compiles the BPF objects that the crate embeds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CLANGS: [&str; 4] = ["clang-16", "clang-19", "clang-14", "clang"];
const STRIPS: [&str; 4] = ["llvm-strip-16", "llvm-strip-19", "llvm-strip-14", "llvm-strip"];

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
    let advance = crate_dir.join("src/bench/advance.bpf.c");
    for input in [&engine, &datapath, &advance] {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    for name in ["CLANG", "PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }

    let clang = clang()?;
    let strip = STRIPS.into_iter().find(|name| runs(name));
    for (source, object) in [(datapath.join("vcc.bpf.c"), "vcc.bpf.o"), (advance, "advance.bpf.o")]
    {
        compile(&clang, &engine, &source, &out.join(object))?;
        if let Some(strip) = strip {
            // Debug information goes, BTF stays: the loader needs it for the timer.
            run(Command::new(strip).arg("--strip-debug").arg(out.join(object)))?;
        }
    }
    Ok(())
}

fn clang() -> Result<String, String> {
    if let Ok(named) = env::var("CLANG") {
        return if runs(&named) {
            Ok(named)
        } else {
            Err(format!("$CLANG is `{named}`, which does not run"))
        };
    }
    CLANGS.into_iter().find(|name| runs(name)).map(str::to_owned).ok_or_else(|| {
        "no clang, which compiles the kernel's part of vcc: `make deps`, \
         or apt-get install clang-16 libbpf-dev"
            .to_owned()
    })
}

fn compile(clang: &str, engine: &Path, source: &Path, object: &Path) -> Result<(), String> {
    let mut command = Command::new(clang);
    command.args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-ffreestanding"]);
    command.args(["-Wall", "-Wextra", "-Werror"]);
    command.arg("-I").arg(engine);
    // <linux/types.h> wants <asm/types.h>, which Debian keeps in a directory per architecture.
    let multiarch = format!("/usr/include/{}-linux-gnu", variable("CARGO_CFG_TARGET_ARCH")?);
    if Path::new(&multiarch).is_dir() {
        command.arg("-I").arg(multiarch);
    }
    run(command.arg("-c").arg(source).arg("-o").arg(object))?;
    fs::metadata(object).map_err(|e| format!("{} was not made: {e}", object.display()))?;
    Ok(())
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
