//! Errors in the arguments of a command.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::{markup, output};

/// The exit status of a command with wrong arguments.
pub const STATUS: u8 = 2;

/// Prints help and version to stdout, and an error to stderr in one line. `hint` may know a better
/// message than clap's.
pub fn explain(error: &clap::Error, hint: fn(&clap::Error) -> Option<String>) -> ExitCode {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::say(&markup::quoted(&text));
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            output::complain(&format!("no command given: `{} --help` lists them", output::name()));
        }
        _ => {
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let what = text.split("\n\nUsage:").next().unwrap_or_default();
            let what = what.split("\n\nFor more information").next().unwrap_or_default();
            output::complain(hint(error).as_deref().unwrap_or(what));
        }
    }
    ExitCode::from(STATUS)
}
