use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use vcc_command::{output, seconds};
use vcc_port::Flow;
use vcc_view::histogram::{self, DelaysView};
use vcc_view::{
    CostWatch, Counting, CpuWatch, GuestCpu, NO_PROMISES, PORT_COLUMNS, PortView, READ_EVERY,
    Source, Watch, Work, cell,
};

use super::sweep;
use super::tenants::Tenants;
use crate::interrupt;

/// List the ports that vcc is attached to, the delays of their guests, and untranslated segments
#[derive(clap::Args)]
pub struct Arguments {
    /// Measure for SECONDS what vcc itself costs at each port; requires root
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = seconds::up_to_a_minute)]
    cost: Option<Duration>,

    /// Print the ports as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    port: &'a PortView,
    counters: BTreeMap<&'static str, u64>,
    delays: Option<DelaysView>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Ports { ports, remarks } = read(arguments.cost)?;
    remarks.iter().for_each(|remark| output::complain(remark));
    if arguments.json {
        output::say_json(&documents(&ports))?;
    } else {
        output::say(&report(&ports));
    }
    Ok(ExitCode::SUCCESS)
}

/// The ports of this host, and what is to be remarked on them.
pub struct Ports {
    pub ports: Vec<PortView>,
    pub remarks: Vec<String>,
}

/// `cost`: how long to measure what vcc itself costs.
pub fn read(cost: Option<Duration>) -> anyhow::Result<Ports> {
    sweep()?;
    let sources = Source::list()?;
    let cpus = CpuWatch::begin(&sources);
    let mut remarks = cpus.problems().to_vec();
    let costs = cost.map(|_| (Counting::begin(), CostWatch::begin(&sources)));
    let wait = cost.or_else(|| cpus.sees_any().then_some(READ_EVERY));
    if let Some(wait) = wait {
        interrupt::wait(wait);
    }
    let costs = costs.map(|(_counting, watch)| watch.end(&sources));
    let cpus = cpus.end().into_iter();
    let in_kernel = Source::kernel_flows(&sources)?;
    let ports = sources.iter().zip(&in_kernel).zip(cpus);
    let ports = ports.map(|((port, in_kernel), cpu)| view(port, in_kernel, cpu));
    let mut ports: Vec<PortView> = ports.collect::<Result<_, _>>()?;
    for ((port, source), cost) in ports.iter_mut().zip(&sources).zip(costs.into_iter().flatten()) {
        if cost.is_none() {
            let why = match source {
                Source::Kernel(_) => "it takes root, or CAP_SYS_ADMIN",
                Source::Domain(_) => "its process of `vcc domain` cannot be seen from here",
            };
            remarks.push(format!("{}: its cost cannot be read: {why}", port.port));
        }
        port.cost = cost;
    }
    let mut tenants = Tenants::ask();
    ports.iter_mut().for_each(|view| view.tenant = tenants.of_port(&view.port));
    let (kernel, served): (Vec<&Source>, Vec<_>) =
        sources.iter().partition(|source| matches!(source, Source::Kernel(_)));
    for tap in served.iter().map(|source| source.device()) {
        if kernel.iter().any(|source| source.device() == tap) {
            remarks.push(format!(
                "{tap} is served by `vcc domain` and a port in the kernel, so its connections are \
                 translated twice: `vcc detach {tap}`"
            ));
        }
    }
    for PortView { port, unpromised, .. } in &ports {
        if let Some(why) = unpromised {
            remarks.push(format!("{port}: {NO_PROMISES}: {why}"));
        }
    }
    Ok(Ports { ports, remarks })
}

/// For JSON.
pub fn documents(ports: &[PortView]) -> impl Serialize {
    ports.iter().map(Document::new).collect::<Vec<_>>()
}

fn view(
    port: &Source,
    in_kernel: &[Flow],
    cpu: Option<GuestCpu>,
) -> Result<PortView, vcc_port::Error> {
    let mut view = PortView { cpu, ..PortView::read(port)? };
    let mut count = |flow: &Flow| view.sums.count(&flow.state);
    match port {
        Source::Kernel(_) => in_kernel.iter().for_each(&mut count),
        Source::Domain(port) => port.flows().iter().for_each(&mut count),
    }
    Ok(view)
}

impl<'a> Document<'a> {
    fn new(port: &'a PortView) -> Self {
        let counters = port.counters.iter().map(|counter| (counter.name, counter.value));
        let delays = port.delays.as_ref().map(DelaysView::from);
        Self { port, counters: counters.collect(), delays }
    }
}

pub fn report(ports: &[PortView]) -> String {
    let mut text = String::new();
    for port in ports {
        let cell = |key| cell(PORT_COLUMNS, port, key);
        if let Some(first) = &port.shown_at {
            text += &format!(
                "{}: shares the port of {first}; its counters are listed there\n",
                cell("port")
            );
            text += &cost_text(port);
            continue;
        }
        let others = port.same_guest_as.as_ref().map(|others| format!(", one port with {others}"));
        let channel = port.channel.as_ref().map(|word| format!(", channel {word}"));
        let (underlay, mode) = (cell("underlay"), cell("mode"));
        // Where rules decide, they decide both.
        let mode = if mode == underlay { String::new() } else { format!(", {mode}") };
        text += &format!(
            "{}: {underlay}{mode}, {} of {} connections{}{}\n",
            cell("port"),
            cell("flows"),
            cell("max_flows"),
            others.unwrap_or_default(),
            channel.unwrap_or_default()
        );
        if let Some(cpu) = &port.cpu {
            text += &format!("{:>12}  {cpu}\n", "");
        }
        text += &cost_text(port);
        if let Some(delays) = port.delays.as_ref().and_then(histogram::text) {
            text += &format!("{:>12}  {delays}\n", "");
        }
        for counter in port.counters.iter().filter(|counter| counter.value > 0) {
            text += &format!("{:>12}  {}\n", counter.value, counter.meaning);
        }
    }
    if ports.is_empty() {
        text += "vcc is attached nowhere\n";
    }
    text
}

/// A line; empty if it was not measured.
fn cost_text(port: &PortView) -> String {
    let Some(cost) = &port.cost else { return String::new() };
    let cell = |key| cell(PORT_COLUMNS, port, key);
    let frames = |key, work: Option<Work>| {
        let rate = cell(key);
        match work.and_then(|work| work.fast_part) {
            Some(part) => format!("{rate}, {:.0} % on the fast path", part * 100.0),
            None => rate,
        }
    };
    format!(
        "{:>12}  costs {:.2} % of a CPU: {} for a frame from the guest ({}), {} for a frame to it ({})\n",
        "",
        cost.cpu * 100.0,
        cell("cost_from_guest_ns"),
        frames("frames_from_guest_per_s", cost.from_guest),
        cell("cost_to_guest_ns"),
        frames("frames_to_guest_per_s", cost.to_guest),
    )
}

#[cfg(test)]
mod tests {
    use vcc_view::{Counter, Shares, testing};

    use super::*;

    fn ports() -> [PortView; 1] {
        let counter = |name, meaning, value| Counter { name, meaning, value };
        let counters =
            vec![counter("not_tcp", "passed: not TCP", 7), counter("deep", "passed: deep", 0)];
        let delays = Some(testing::delays(&[200], &[20_000]));
        let mut port = PortView { counters, delays, ..testing::port("veth3") };
        port.sums.count(&testing::state());
        [port]
    }

    #[test]
    fn json_has_every_column_and_the_counters_by_name() {
        let document = serde_json::to_value(Document::new(&ports()[0])).expect("JSON");
        let keys = PORT_COLUMNS.iter().map(|column| column.key).chain(["counters", "delays"]);
        for key in keys.clone() {
            assert!(document.get(key).is_some(), "{key}: {document}");
        }
        assert_eq!(document.as_object().map(serde_json::Map::len), Some(keys.count()));
        assert_eq!(document["counters"], serde_json::json!({"not_tcp": 7, "deep": 0}));
        assert_eq!((&document["flows"], &document["window_bytes"]), (&1.into(), &14_400.into()));
        assert!(document["marks_per_s"].is_null() && document["marks"].is_null(), "{document}");
    }

    #[test]
    fn a_visible_cpu_of_a_guest_is_reported() {
        let shares = Shares { waiting: 0.61, running: 0.32, idle: 0.07 };
        let cpu = Some(GuestCpu { machine: Some("web-1".into()), shares });
        let ports = [PortView { cpu, ..testing::port("vnet3") }];
        let report_text = "vnet3: dctcp, enforce, 0 of 65536 connections\n              \
                    the CPU of web-1 waits for 61 % of the time and runs for 32 %\n";
        assert_eq!(report(&ports), report_text);
        let document = serde_json::to_value(Document::new(&ports[0])).expect("JSON");
        let of = |key: &str| document[key].clone();
        assert_eq!((of("machine"), of("cpu_waiting")), ("web-1".into(), 0.61.into()));
        assert_eq!((of("cpu_running"), of("cpu_idle")), (0.32.into(), 0.07.into()));
    }

    #[test]
    fn counters_of_devices_of_one_guest_are_reported_once() {
        let [first] = ports();
        let of = |device: &str, others: &str| PortView {
            same_guest_as: Some(others.to_owned()),
            ..testing::port(device)
        };
        let first = PortView { same_guest_as: Some("veth4".to_owned()), ..first };
        let second = PortView { shown_at: Some("veth3".to_owned()), ..of("veth4", "veth3") };
        let report_text = report(&[first, second.clone()]);
        assert!(
            report_text.starts_with(
                "veth3: dctcp, enforce, 1 of 65536 connections, one port with veth4\n"
            )
        );
        assert!(
            report_text
                .ends_with("\nveth4: shares the port of veth3; its counters are listed there\n"),
            "{report_text}"
        );
        let document = serde_json::to_value(Document::new(&second)).expect("JSON");
        for key in ["flows", "window_bytes", "untranslated_segments"] {
            assert!(document[key].is_null(), "{key}: {document}");
        }
        assert_eq!(document["same_guest_as"], "veth3");
    }

    #[test]
    fn delays_and_counters_above_zero_are_reported() {
        let report_text = "\
veth3: dctcp, enforce, 1 of 65536 connections
              fabric delay: 192 us at the median, 255 us at p99; guest delay: 24.6 ms at the median, 32.6 ms at p99
           7  passed: not TCP
";
        assert_eq!(report(&ports()), report_text);
        assert_eq!(report(&[]), "vcc is attached nowhere\n");
    }

    #[test]
    fn where_rules_decide_the_report_names_them_once() {
        let by_rule = || Some("by rule".to_owned());
        let port = PortView { underlay: by_rule(), mode: by_rule(), ..testing::port("veth3") };
        assert_eq!(report(&[port]), "veth3: by rule, 0 of 65536 connections\n");
    }
}
