use std::process::ExitCode;

use vcc_command::output;
use vcc_engine::Underlay;
use vcc_port::{Underlays, Unloading};

/// Unload an underlay
///
/// Its connections keep their windows and continue with another underlay, as do rules and ports that name
/// it: NewReno, with ECN if the unloaded one had it, or the one that --to names.
#[derive(clap::Args)]
pub struct Arguments {
    /// Name of the underlay, from `vcc underlay list`
    #[arg(value_name = "NAME")]
    name: String,

    /// The underlay that replaces it; it must have ECN if NAME has
    #[arg(long, value_name = "NAME")]
    to: Option<Underlay>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    let Unloading { to, connections, rules, ports } = Underlays::unload(name, arguments.to)?;
    let some = |count: u32, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let (connections, rules, ports) =
        (some(connections, "connection"), some(rules, "rule"), some(ports, "port"));
    output::say(&format!(
        "{name}: unloaded; {connections}, {rules} and {ports} continue with {to}\n"
    ));
    if rules != "0 rules" {
        output::complain(&format!(
            "the policy's file still names `{name}` and will be refused: name another underlay there"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
