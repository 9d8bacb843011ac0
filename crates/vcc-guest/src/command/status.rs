use std::process::ExitCode;

use vcc_command::output;
use vcc_guest::{ChannelState, Flood, Status};

use crate::by;

/// Show whether the congestion control is registered, is the default, and is in use
#[derive(clap::Args)]
pub struct Arguments {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let status = Flood::here()?.status()?;
    if arguments.json {
        output::say_json(&status)?;
    } else {
        output::say(&report(&status));
    }
    Ok(ExitCode::SUCCESS)
}

fn report(status: &Status) -> String {
    let mut text = match &status.lacks {
        None => format!("kernel: Linux {}, with BPF struct_ops\n", status.kernel),
        Some(lacks) => format!("kernel: {lacks}\n"),
    };
    let registered = match &status.provider {
        None => "not registered".to_owned(),
        Some(provider) => format!("registered {}", by(provider)),
    };
    let channel = match status.channel {
        None => "",
        Some(ChannelState::Leased) => "\nchannel: the host holds new connections",
        Some(ChannelState::NotLeased) => {
            "\nchannel: no lease of a host, the window is NewReno's (journalctl -u vcc-guest-channel)"
        }
    };
    text += &format!("flood: {registered}{channel}\n");
    let before = status.default_before.as_ref().map(|name| format!("; before flood: {name}"));
    text +=
        &format!("default of new connections: {}{}\n", status.default, before.unwrap_or_default());
    text += &match (&status.connections, &status.connections_unknown) {
        (Some(count), _) => format!("connections: {} of {} use flood\n", count.using, count.all),
        (None, why) => format!("connections: {}\n", why.as_deref().unwrap_or("unknown")),
    };
    text
}

#[cfg(test)]
mod tests {
    use vcc_guest::{Connections, Provider};

    use super::*;

    #[test]
    fn all_is_in_four_lines() {
        let mut status = Status {
            kernel: "6.12.1".into(),
            lacks: None,
            provider: Some(Provider::Bpf("/sys/fs/bpf/vcc-guest/flood".into())),
            registered: Some("bpf"),
            pin: Some("/sys/fs/bpf/vcc-guest/flood".into()),
            channel: None,
            default: "flood".into(),
            default_before: Some("cubic".into()),
            connections: Some(Connections { all: 7, using: 3 }),
            connections_unknown: None,
        };
        assert_eq!(
            report(&status),
            "kernel: Linux 6.12.1, with BPF struct_ops\n\
             flood: registered as BPF, pinned at /sys/fs/bpf/vcc-guest/flood\n\
             default of new connections: flood; before flood: cubic\n\
             connections: 3 of 7 use flood\n"
        );
        for (channel, line) in [
            (ChannelState::Leased, "channel: the host holds new connections"),
            (ChannelState::NotLeased, "channel: no lease of a host, the window is NewReno's"),
        ] {
            status.channel = Some(channel);
            assert!(report(&status).lines().nth(2).is_some_and(|it| it.starts_with(line)));
        }
        status = Status {
            channel: None,
            lacks: Some("Linux 5.4 has no BTF".into()),
            provider: None,
            registered: None,
            pin: None,
            default: "cubic".into(),
            default_before: None,
            connections: None,
            connections_unknown: Some("cannot count the connections: no".into()),
            ..status
        };
        assert_eq!(
            report(&status),
            "kernel: Linux 5.4 has no BTF\n\
             flood: not registered\n\
             default of new connections: cubic\n\
             connections: cannot count the connections: no\n"
        );
    }
}
