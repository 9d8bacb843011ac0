use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_underlay::{BuildError, Checked};

/// Compile and check an underlay
///
/// The file is like those of vcc's own underlays: docs/congestion-control.md has an example. The check
/// runs its hooks on generated connections, and then with deliberate faults, which must be detected. An
/// error names file and line. Needs clang, but no privilege.
#[derive(clap::Args)]
pub struct Arguments {
    /// The underlay, in C
    #[arg(value_name = "FILE.h")]
    source: PathBuf,

    /// Write the object to FILE [default: beside the source, as .o]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let source = &arguments.source;
    let (object, Checked { calls, twins }) = match vcc_underlay::build(source) {
        Err(BuildError::Refused { path, output }) => {
            output::complain_at_length(&output);
            bail!("the compiler rejects {}", path.display());
        }
        built => built?,
    };
    let path = arguments.output.clone().unwrap_or_else(|| source.with_extension("o"));
    fs::write(&path, object.bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    output::say(&format!(
        "{}: {} ({calls} hooks run, {twins} deliberate faults detected)\n{}: built\n",
        object.name(),
        object.about(),
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}
