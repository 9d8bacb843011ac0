use std::process::ExitCode;

use vcc_port::Port;

use super::ports_of;
use crate::output;
use crate::seen::PortView;

/// List the ports with vcc on them, and what passed there untouched
#[derive(clap::Args)]
pub struct Arguments {
    /// Print the ports as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let ports: Vec<PortView> = ports_of(&[])?.iter().map(view).collect::<Result<_, _>>()?;
    if arguments.json {
        output::say_json(&ports)?;
    } else {
        output::say(&report(&ports));
    }
    Ok(ExitCode::SUCCESS)
}

fn view(port: &Port) -> Result<PortView, vcc_port::Error> {
    let ruled = port.index()?.is_some();
    PortView::new(port, &port.params()?, ruled, port.flows()?.len())
}

fn report(ports: &[PortView]) -> String {
    let mut text = String::new();
    for PortView { port, underlay, mode, flows, max_flows, meanings, .. } in ports {
        text += &format!("{port}: {underlay}, {mode}, {flows} of {max_flows} connections\n");
        for (count, meaning) in meanings {
            text += &format!("{count:>12}  {meaning}\n");
        }
    }
    if ports.is_empty() {
        text += "vcc is attached nowhere\n";
    }
    text
}
