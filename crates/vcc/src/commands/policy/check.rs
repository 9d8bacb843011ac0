use std::path::PathBuf;
use std::process::ExitCode;

use vcc_command::output;
use vcc_engine::Mode;

use super::{complain, counted, read_with_text};

/// Check a policy file, and list all errors and warnings
///
/// A warning is about a valid policy that may not be what was meant.
#[derive(clap::Args)]
pub struct Arguments {
    file: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (policy, text) = read_with_text(&arguments.file)?;
    let rules = policy.count();
    let ports = counted(policy.ports().len(), "pattern");
    let pools = counted(policy.pools().len(), "pool");
    let file = arguments.file.display();
    // Elsewhere than at its host, the file is checked all the same.
    let devices = vcc_port::coexistence::host_devices().unwrap_or_default();
    let devices: Vec<_> = devices.into_iter().map(|device| (device.name, device.what)).collect();
    complain(&policy.warn_of_host_devices(&text, &file.to_string(), &devices));
    let default = policy.default_treatment().map_or_else(String::new, |of| match of.mode() {
        Mode::Ignore => "; the default ignores connections".to_owned(),
        mode => format!("; the default is {}, in {mode} mode", of.underlay()),
    });
    output::say(&format!("{file} is valid: {rules}, {pools}, {ports} of ports{default}\n"));
    Ok(ExitCode::SUCCESS)
}
