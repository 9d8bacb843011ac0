use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use vcc_command::output;
use vcc_command::signals::Signals;
use vcc_guest::{Flood, Form, Heard, Installed};

use crate::{by, remove, require_root};

/// Register the congestion control `flood`, and make it the default of new connections
///
/// It is registered as BPF struct_ops, or by the module tcp_flood on kernels without, and stays until
/// `vcc-guest remove` or the end of this boot. Connections that exist keep their congestion control. The default is
/// that of the command's network namespace; namespaces that are made meanwhile, as for containers, inherit it.
///
/// WARNING: without --channel, a connection under it has a window of 512 segments from its first on, and leaves
/// congestion control to the host. Use it only behind `vcc domain --act hold`; elsewhere it floods the network.
///
/// With --channel, the command stays in the foreground, and the host (`vcc domain --channel`) reports which
/// connections it holds. The others, and all if the host reports nothing for two seconds, have the window of
/// NewReno. The end of the command does what `vcc-guest remove` does.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only register it, for programs and routes that choose it by name
    #[arg(long)]
    available: bool,

    /// Follow what the host reports on this channel [default: /dev/virtio-ports/org.vcc.flood]
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true,
        default_missing_value = CHANNEL)]
    channel: Option<PathBuf>,
}

/// The virtual machine's port.
const CHANNEL: &str = "/dev/virtio-ports/org.vcc.flood";

const WARNING: &str = "warning: new connections now leave congestion control to the host; unless it has \
                       `vcc domain --act hold` in front of this guest, they flood the network: \
                       `vcc-guest remove` ends that";

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    require_root("register a congestion control")?;
    let flood = Flood::here()?;
    if let Some(channel) = &arguments.channel {
        follow(&flood, arguments.available, channel)?;
        return Ok(ExitCode::SUCCESS);
    }
    let installed = flood.install(Form::Unconditional, arguments.available)?;
    output::say(&report(&installed, arguments.available));
    if !arguments.available {
        output::complain(WARNING);
    }
    Ok(ExitCode::SUCCESS)
}

fn follow(flood: &Flood, only_available: bool, channel: &Path) -> anyhow::Result<()> {
    let stop = Signals::block().context("cannot wait for signals")?;
    // Before anything changes.
    Flood::require_channel(channel)?;
    let installed = flood.install(Form::Leased, only_available)?;
    output::say(&report(&installed, only_available));
    let path = channel.display();
    output::say(&format!("its window is NewReno's until the host reports on {path}\n"));
    let followed = flood.follow(channel, &stop, |heard| match heard {
        Heard::Up => output::say(&format!("the host reports on {path}\n")),
        Heard::Down { why, malformed, repaired_losses } => output::complain(&format!(
            "{path}: {why} ({malformed} malformed messages so far, and {repaired_losses} losses that the host has \
             repaired); the window of all connections is NewReno's until the host reports again"
        )),
    });
    let removed = remove::run_on(flood);
    followed?;
    removed
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
