use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use vcc_port::Port;
use vcc_view::PortView;

use super::ports_of;
use crate::output;

/// List the ports that vcc is attached to, and what passed them untranslated
#[derive(clap::Args)]
pub struct Arguments {
    /// Print the ports as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    port: &'a str,
    underlay: &'a str,
    mode: &'a str,
    flows: usize,
    max_flows: u32,
    counters: BTreeMap<&'static str, u64>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let ports: Vec<PortView> = ports_of(&[])?.iter().map(view).collect::<Result<_, _>>()?;
    if arguments.json {
        let documents: Vec<Document> = ports.iter().map(Document::new).collect();
        output::say_json(&documents)?;
    } else {
        output::say(&report(&ports));
    }
    Ok(ExitCode::SUCCESS)
}

fn view(port: &Port) -> Result<PortView, vcc_port::Error> {
    PortView::read(port, port.flows()?.len())
}

impl<'a> Document<'a> {
    fn new(view: &'a PortView) -> Self {
        let PortView { port, underlay, mode, flows, max_flows, counters, .. } = view;
        let counters = counters.iter().map(|counter| (counter.name, counter.value)).collect();
        Self { port, underlay, mode, flows: *flows, max_flows: *max_flows, counters }
    }
}

fn report(ports: &[PortView]) -> String {
    let mut text = String::new();
    for PortView { port, underlay, mode, flows, max_flows, counters, .. } in ports {
        text += &format!("{port}: {underlay}, {mode}, {flows} of {max_flows} connections\n");
        for counter in counters.iter().filter(|counter| counter.value > 0) {
            text += &format!("{:>12}  {}\n", counter.value, counter.meaning);
        }
    }
    if ports.is_empty() {
        text += "vcc is attached nowhere\n";
    }
    text
}
