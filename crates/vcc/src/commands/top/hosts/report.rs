//! What one host answers, and the view of all.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use vcc_command::table::{Align, Table};
use vcc_view::Unit;

use super::list::Endpoint;

/// Of a host that answered.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    version: Option<String>,
    ports: Option<usize>,
    flows: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
    /// Problems that the operator has to solve.
    problems: Vec<String>,
    #[serde(skip)]
    busy: Vec<BusyPort>,
}

/// Over the daemon's last ten seconds; None before its second read.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Rates {
    goodput_bits_per_s: Option<f64>,
    marks_per_s: Option<f64>,
    reductions_per_s: Option<f64>,
    retransmissions_per_s: Option<f64>,
    drops_per_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct BusyPort {
    port: String,
    tenant: Option<String>,
    flows: Option<u64>,
    #[serde(flatten)]
    rates: Rates,
}

impl Rates {
    fn from_json(of: &Value) -> Self {
        let rate = |key: &str| of[key].as_f64();
        Self {
            goodput_bits_per_s: rate("goodput_bits_per_s"),
            marks_per_s: rate("marks_per_s"),
            reductions_per_s: rate("reductions_per_s"),
            retransmissions_per_s: rate("retransmissions_per_s"),
            drops_per_s: rate("drops_per_s"),
        }
    }

    fn cells(&self) -> [String; 5] {
        let rate = |unit: Unit, rate: Option<f64>| unit.cell(&rate.into());
        [
            rate(Unit::BitsPerS, self.goodput_bits_per_s),
            rate(Unit::PerS, self.marks_per_s),
            rate(Unit::PerS, self.reductions_per_s),
            rate(Unit::PerS, self.retransmissions_per_s),
            rate(Unit::PerS, self.drops_per_s),
        ]
    }
}

const RATES: [(&str, Align); 5] = [
    ("RATE", Align::Right),
    ("MARKS/S", Align::Right),
    ("REDUC/S", Align::Right),
    ("RETR/S", Align::Right),
    ("DROPS/S", Align::Right),
];

impl Report {
    /// Another version's answer may lack some of it.
    pub fn from_json(body: &[u8]) -> Result<Self, String> {
        let answer: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the answer is not vcc's: {error}"))?;
        let ports = answer["ports"].as_array().ok_or("the answer is not vcc's: it has no ports")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let busy = ports.iter().filter(|port| port["goodput_bits_per_s"].as_f64() > Some(0.0));
        let busy = busy.map(|port| BusyPort {
            port: text(&port["port"]).unwrap_or_default(),
            tenant: text(&port["tenant"]),
            flows: port["flows"].as_u64(),
            rates: Rates::from_json(port),
        });
        let problem = |problem: &Value| {
            Some(format!("{}: {}", problem["about"].as_str()?, problem["what"].as_str()?))
        };
        Ok(Self {
            version: text(&answer["version"]),
            ports: Some(ports.len()),
            flows: answer["all"]["flows"].as_u64(),
            rates: Rates::from_json(&answer["all"]),
            problems: answer["problems"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(problem)
                .collect(),
            busy: busy.collect(),
        })
    }
}

/// A host of the list, as it answered last. None: it was not asked yet, or has not answered yet.
pub struct Host {
    pub endpoint: Endpoint,
    pub answer: Option<Result<Report, String>>,
}

#[derive(Serialize)]
pub struct View<'a> {
    hosts: Vec<HostView<'a>>,
    busiest_ports: Vec<BusiestView<'a>>,
}

#[derive(Serialize)]
struct HostView<'a> {
    host: String,
    /// Why it has not answered; then the others are null.
    error: Option<&'a str>,
    #[serde(flatten)]
    report: Cow<'a, Report>,
}

#[derive(Serialize)]
struct BusiestView<'a> {
    host: String,
    #[serde(flatten)]
    port: &'a BusyPort,
}

impl<'a> View<'a> {
    pub fn new(hosts: &'a [Host], busiest: usize) -> Self {
        let view = |host: &'a Host| HostView {
            host: host.endpoint.to_string(),
            error: match &host.answer {
                None => Some("not asked yet"),
                Some(answer) => answer.as_ref().err().map(String::as_str),
            },
            report: match &host.answer {
                Some(Ok(report)) => Cow::Borrowed(report),
                _ => Cow::Owned(Report::default()),
            },
        };
        let answered = hosts.iter().filter_map(|host| {
            let report = host.answer.as_ref()?.as_ref().ok()?;
            Some((host, report))
        });
        let mut ports: Vec<BusiestView> = answered
            .flat_map(|(host, report)| {
                let host = host.endpoint.to_string();
                report.busy.iter().map(move |port| BusiestView { host: host.clone(), port })
            })
            .collect();
        let rate = |view: &BusiestView| view.port.rates.goodput_bits_per_s.unwrap_or(0.0);
        ports.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        ports.truncate(busiest);
        Self { hosts: hosts.iter().map(view).collect(), busiest_ports: ports }
    }

    /// How many of the hosts answered, and what all do together.
    pub fn summary(&self) -> String {
        let reports =
            || self.hosts.iter().filter(|host| host.error.is_none()).map(|host| &*host.report);
        let sum: f64 = reports().filter_map(|it| it.rates.goodput_bits_per_s).sum();
        let flows: u64 = reports().filter_map(|it| it.flows).sum();
        format!(
            "{} of {} hosts answer  {flows} flows  {}",
            reports().count(),
            self.hosts.len(),
            vcc_view::units::bit_rate(sum)
        )
    }

    pub fn hosts(&self) -> String {
        let left = Align::Left;
        let first =
            [("HOST", left), ("VERSION", left), ("PORTS", Align::Right), ("FLOWS", Align::Right)];
        let mut table = Table::new(first.into_iter().chain(RATES).chain([("PROBLEM", left)]));
        for HostView { host, error, report } in &self.hosts {
            let count = |count: Option<u64>| count.map_or("-".to_owned(), |it| it.to_string());
            let cells = [
                host.clone(),
                report.version.clone().unwrap_or("-".to_owned()),
                count(report.ports.map(|it| it as u64)),
                count(report.flows),
            ];
            let problem = match (error, &report.problems[..]) {
                (Some(error), _) => (*error).to_owned(),
                (None, []) => String::new(),
                (None, [one]) => one.clone(),
                (None, [one, more @ ..]) => format!("{one} (and {} more)", more.len()),
            };
            table.row(cells.into_iter().chain(report.rates.cells()).chain([problem]));
        }
        table.render()
    }

    /// None if no port is busy.
    pub fn busiest(&self) -> Option<String> {
        let left = Align::Left;
        let first = [("HOST", left), ("PORT", left), ("TENANT", left), ("FLOWS", Align::Right)];
        let mut table = Table::new(first.into_iter().chain(RATES));
        for BusiestView { host, port } in &self.busiest_ports {
            let cells = [
                host.clone(),
                port.port.clone(),
                port.tenant.clone().unwrap_or("-".to_owned()),
                port.flows.map_or("-".to_owned(), |it| it.to_string()),
            ];
            table.row(cells.into_iter().chain(port.rates.cells()));
        }
        (!self.busiest_ports.is_empty()).then(|| table.render())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(name: &str, answer: Result<Value, &str>) -> Host {
        let answer = answer.map_err(str::to_owned);
        let answer = answer.and_then(|it| Report::from_json(it.to_string().as_bytes()));
        Host { endpoint: Endpoint::Name(name.to_owned(), 9644), answer: Some(answer) }
    }

    fn port(name: &str, rate: Value) -> Value {
        json!({ "port": name, "tenant": "acme", "flows": 2, "goodput_bits_per_s": rate })
    }

    #[test]
    fn hosts_are_as_listed_and_ports_by_their_rates() {
        let busy = json!({
            "version": "0.1.0", "problems": [{ "about": "policy", "what": "broken" }],
            "all": { "flows": 3, "goodput_bits_per_s": 6e6 },
            "ports": [port("tap1", json!(1e6)), port("tap2", json!(5e6)), port("tap3", Value::Null)],
        });
        let calm =
            json!({ "version": "0.1.0", "problems": [], "all": { "flows": 0 }, "ports": [] });
        let hosts =
            [host("b", Ok(busy)), host("gone", Err("no answer within 3 s")), host("a", Ok(calm))];
        let view = View::new(&hosts, 1);
        assert_eq!(view.summary(), "2 of 3 hosts answer  3 flows  6.00 Mbit/s");
        let shown = view.hosts();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].starts_with("b ") && lines[1].ends_with("policy: broken"), "{shown}");
        assert!(
            lines[2].starts_with("gone ") && lines[2].ends_with("no answer within 3 s"),
            "{shown}"
        );
        assert!(lines[3].starts_with("a "), "{shown}");
        let busiest = view.busiest().expect("one");
        assert!(busiest.contains("tap2") && !busiest.contains("tap1"), "{busiest}");
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(
            json["hosts"][1],
            json!({
                "host": "gone", "error": "no answer within 3 s", "version": null, "ports": null, "flows": null,
                "goodput_bits_per_s": null, "marks_per_s": null, "reductions_per_s": null,
                "retransmissions_per_s": null, "drops_per_s": null, "problems": [],
            })
        );
        assert_eq!(json["hosts"][0]["ports"], 3);
        assert_eq!(json["busiest_ports"][0]["host"], "b");
    }

    #[test]
    fn what_is_not_vcc_s_is_an_error() {
        assert!(Report::from_json(b"<html>").is_err());
        assert!(Report::from_json(b"{}").is_err());
    }
}
