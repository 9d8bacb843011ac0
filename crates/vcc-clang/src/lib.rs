//! Compiles C to BPF: for the build scripts of crates that embed BPF objects, and at run time for
//! those that users write.

use std::env;
use std::path::Path;
use std::process::Command;

const CLANGS: [&str; 4] = ["clang-16", "clang-19", "clang-14", "clang"];
const STRIPS: [&str; 4] = ["llvm-strip-16", "llvm-strip-19", "llvm-strip-14", "llvm-strip"];

/// The compiler and the strip program.
pub struct Clang {
    clang: String,
    strip: Option<&'static str>,
}

/// The compiler, or the strip program, did not do its work.
#[derive(Debug)]
pub struct CompileError {
    pub command: String,
    pub output: String,
}

impl From<CompileError> for String {
    fn from(CompileError { command, output }: CompileError) -> Self {
        format!("{command} failed:\n{output}")
    }
}

impl Clang {
    /// For a build script: cargo runs it again when another compiler may be found.
    pub fn for_build_script() -> Result<Self, String> {
        for name in ["CLANG", "PATH"] {
            println!("cargo::rerun-if-env-changed={name}");
        }
        Self::find()
    }

    /// Uses $CLANG if it is set, else the first clang that runs.
    pub fn find() -> Result<Self, String> {
        Ok(Self { clang: clang()?, strip: STRIPS.into_iter().find(|name| runs(name)) })
    }

    /// Compiles a file that needs the headers of the target.
    pub fn compile(&self, source: &Path, includes: &[&Path], object: &Path) -> Result<(), String> {
        let arch = variable("CARGO_CFG_TARGET_ARCH")?;
        // As libbpf names it.
        let named = match arch.as_str() {
            "x86_64" => "x86",
            "aarch64" => "arm64",
            other => other,
        };
        let mut options = vec![format!("-D__TARGET_ARCH_{named}")];
        // <linux/types.h> includes <asm/types.h>, which Debian keeps in a directory per
        // architecture: the first of another one is of its packages for cross-compiling.
        let of_target =
            [format!("/usr/include/{arch}-linux-gnu"), format!("/usr/{arch}-linux-gnu/include")];
        if let Some(multiarch) = of_target.iter().find(|it| Path::new(it).join("asm").is_dir()) {
            options.push(format!("-I{multiarch}"));
        }
        // BTF has the names of sources, which would be those of the directory of this build.
        options.push(format!("-ffile-prefix-map={}=.", variable("CARGO_MANIFEST_DIR")?));
        Ok(self.compile_with(source, includes, &options, object)?)
    }

    /// Compiles a file that needs only the compiler's own headers.
    pub fn compile_with(
        &self,
        source: &Path,
        includes: &[&Path],
        options: &[String],
        object: &Path,
    ) -> Result<(), CompileError> {
        let mut command = Command::new(&self.clang);
        command.args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-ffreestanding"]);
        command.args(["-Wall", "-Wextra", "-Werror"]);
        for directory in includes {
            command.arg("-I").arg(directory);
        }
        command.args(options);
        run(command.arg("-c").arg(source).arg("-o").arg(object))?;
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

fn run(command: &mut Command) -> Result<(), CompileError> {
    let output = command.output();
    let failed = |output: String| CompileError { command: format!("{command:?}"), output };
    let output = output.map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// An environment variable that cargo sets for build scripts.
pub fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
