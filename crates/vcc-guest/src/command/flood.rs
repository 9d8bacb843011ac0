use std::process::ExitCode;

use vcc_command::output;
use vcc_guest::{Flood, Installed};

use crate::{by, require_root};

/// Register the congestion control `flood`, and make it the default of new connections
///
/// It is registered as BPF struct_ops, or by the module tcp_flood on kernels without, and stays until
/// `vcc-guest remove` or the end of this boot. Connections that exist keep their congestion control. The default is
/// that of the command's network namespace; namespaces that are made meanwhile, as for containers, inherit it.
///
/// WARNING: a connection under it has a window of 512 segments from its first on, and leaves congestion control
/// to the host. Use it only behind `vcc domain --act hold`; elsewhere it floods the network.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only register it, for programs and routes that choose it by name
    #[arg(long)]
    available: bool,
}

const WARNING: &str = "warning: new connections now leave congestion control to the host; unless it has \
                       `vcc domain --act hold` in front of this guest, they flood the network: \
                       `vcc-guest remove` ends that";

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    require_root("register a congestion control")?;
    let installed = Flood::here()?.install(arguments.available)?;
    output::say(&report(&installed, arguments.available));
    if !arguments.available {
        output::complain(WARNING);
    }
    Ok(ExitCode::SUCCESS)
}

fn report(installed: &Installed, only_available: bool) -> String {
    let Installed { provider, was_registered, default, before } = installed;
    let already = if *was_registered { "already " } else { "" };
    let mut text = format!("flood is {already}registered {}\n", by(provider));
    let before = before.as_ref().map(|name| format!("; before it: {name}")).unwrap_or_default();
    text += &match only_available {
        true => format!("the default of new connections is {default}\n"),
        false => format!("it is the default of new connections{before}\n"),
    };
    text
}

#[cfg(test)]
mod tests {
    use vcc_guest::Provider;

    use super::*;

    #[test]
    fn the_report_names_both_defaults() {
        let mut installed = Installed {
            provider: Provider::Bpf("/sys/fs/bpf/vcc-guest/flood".into()),
            was_registered: false,
            default: "flood".into(),
            before: Some("cubic".into()),
        };
        assert_eq!(
            report(&installed, false),
            "flood is registered as BPF, pinned at /sys/fs/bpf/vcc-guest/flood\n\
             it is the default of new connections; before it: cubic\n"
        );
        installed.provider = Provider::Module;
        installed.was_registered = true;
        installed.default = "cubic".into();
        assert_eq!(
            report(&installed, true),
            "flood is already registered by the module tcp_flood\n\
             the default of new connections is cubic\n"
        );
    }
}
