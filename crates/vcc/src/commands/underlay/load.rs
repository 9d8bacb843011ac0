use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use vcc_command::output;
use vcc_command::read_underlay;
use vcc_port::{Loading, Underlays};

/// Load underlays on this host
///
/// Policies and `--underlay` accept their names from then on. Connections continue. If the kernel's
/// verifier refuses one, nothing changes. An underlay stays until it is unloaded, or the host restarts.
#[derive(clap::Args)]
pub struct Arguments {
    /// Objects from `vcc underlay build`
    #[arg(value_name = "FILE.o", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    for file in &arguments.files {
        let object = read_underlay(file)?;
        // It may have been built elsewhere.
        vcc_underlay::check(&object)
            .map_err(|e| anyhow!("{} failed the check: {e}", file.display()))?;
        let name = object.name();
        let message = match Underlays::load(&object)? {
            Loading::Loaded => "loaded".to_owned(),
            Loading::Unchanged => "is loaded already, in this version".to_owned(),
            Loading::Replaced(1) => "replaced; 1 connection continues with this version".to_owned(),
            Loading::Replaced(connections) => {
                format!("replaced; {connections} connections continue with this version")
            }
        };
        output::say(&format!("{name}: {message}\n"));
    }
    Ok(ExitCode::SUCCESS)
}
