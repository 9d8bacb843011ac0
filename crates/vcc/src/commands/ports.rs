use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use vcc_engine::{Mode, Underlay};
use vcc_port::Port;

use super::ports_of;
use crate::output;

/// List the ports with vcc on them, and what passed there untouched
#[derive(clap::Args)]
pub struct Arguments {
    /// Print the ports as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct View {
    port: String,
    underlay: String,
    mode: String,
    flows: usize,
    max_flows: u32,
    counters: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    lines: Vec<String>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let views: Vec<View> = ports_of(&[])?.iter().map(view).collect::<Result<_, _>>()?;
    if arguments.json {
        output::say_json(&views)?;
    } else {
        output::say(&report(&views));
    }
    Ok(ExitCode::SUCCESS)
}

fn view(port: &Port) -> Result<View, vcc_port::Error> {
    let params = port.params()?.0;
    let counters = port.counters()?;
    let named = |name: Option<String>, number: u8| name.unwrap_or_else(|| number.to_string());
    let underlay = Underlay::from_number(params.underlay).map(|underlay| underlay.to_string());
    let mode = Mode::from_number(params.mode).map(|mode| mode.to_string());
    Ok(View {
        port: port.device().to_owned(),
        underlay: named(underlay, params.underlay),
        mode: named(mode, params.mode),
        flows: port.flows()?.len(),
        max_flows: port.max_flows()?,
        counters: counters.iter().map(|(counter, count)| (counter.name, count)).collect(),
        lines: counters
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(counter, count)| format!("{count:>12}  {}", counter.meaning))
            .collect(),
    })
}

fn report(views: &[View]) -> String {
    let mut text = String::new();
    for View { port, underlay, mode, flows, max_flows, lines, .. } in views {
        text += &format!("{port}: {underlay}, {mode}, {flows} of {max_flows} connections\n");
        for line in lines {
            text += line;
            text.push('\n');
        }
    }
    if views.is_empty() {
        text += "vcc is attached nowhere\n";
    }
    text
}
