//! Compiles C to BPF, for the build scripts of crates that embed BPF objects.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const CLANGS: [&str; 4] = ["clang-16", "clang-19", "clang-14", "clang"];
const STRIPS: [&str; 4] = ["llvm-strip-16", "llvm-strip-19", "llvm-strip-14", "llvm-strip"];

/// The compiler and the strip program.
pub struct Clang {
    clang: String,
    strip: Option<&'static str>,
}

impl Clang {
    /// Uses $CLANG if it is set, else the first clang that runs.
    pub fn find() -> Result<Self, String> {
        for name in ["CLANG", "PATH"] {
            println!("cargo::rerun-if-env-changed={name}");
        }
        Ok(Self { clang: clang()?, strip: STRIPS.into_iter().find(|name| runs(name)) })
    }

    pub fn compile(&self, source: &Path, includes: &[&Path], object: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.clang);
        command.args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-ffreestanding"]);
        command.args(["-Wall", "-Wextra", "-Werror"]);
        for directory in includes {
            command.arg("-I").arg(directory);
        }
        // <linux/types.h> includes <asm/types.h>, which Debian keeps in a directory per
        // architecture.
        let arch = variable("CARGO_CFG_TARGET_ARCH")?;
        // As libbpf names it.
        command.arg(format!("-D__TARGET_ARCH_{}", if arch == "x86_64" { "x86" } else { &arch }));
        let multiarch = format!("/usr/include/{arch}-linux-gnu");
        if Path::new(&multiarch).is_dir() {
            command.arg("-I").arg(multiarch);
        }
        run(command.arg("-c").arg(source).arg("-o").arg(object))?;
        fs::metadata(object).map_err(|e| format!("clang produced no {}: {e}", object.display()))?;
        if let Some(strip) = self.strip {
            // Strip debug information but keep BTF, which the loader needs.
            run(Command::new(strip).arg("--strip-debug").arg(object))?;
        }
        Ok(())
    }
}

fn clang() -> Result<String, String> {
    if let Ok(named) = env::var("CLANG") {
        return if runs(&named) {
            Ok(named)
        } else {
            Err(format!("$CLANG is `{named}`, which cannot be run"))
        };
    }
    CLANGS.into_iter().find(|name| runs(name)).map(str::to_owned).ok_or_else(|| {
        "clang is missing, which compiles vcc's BPF programs: `make deps`, \
         or apt-get install clang-16 libbpf-dev"
            .to_owned()
    })
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

/// An environment variable that cargo sets for build scripts.
pub fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
