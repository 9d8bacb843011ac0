//! What is in a bundle.

use std::collections::BTreeSet;

use anyhow::anyhow;
use serde::Serialize;
use vcc_command::table::{Align, Table};
use vcc_daemon::Status;
use vcc_port::coexistence::Around;
use vcc_view::{FlowView, Once, PortView};

use super::collection::Collection;
use super::host;
use crate::commands::ports::{self, Ports};
use crate::commands::tenants::Tenants;
use crate::commands::{doctor, policy, status};

/// More than somebody reads, and few enough for a mail.
const MOST_FLOWS: usize = 10_000;

pub fn collect(into: &mut Collection) {
    into.add("versions.txt", "vcc, the kernel, the distribution", &host::versions());
    let checks = doctor::report(&vcc_port::doctor::checks());
    into.add("doctor.txt", "vcc doctor", &checks);
    let status = add_status(into);
    add_policy(into);
    let ports = add_ports(into);
    add_devices(into, status.as_ref(), &ports);
    add_flows(into);
    if let Some(address) = status.and_then(|status| status.listen) {
        into.try_add("metrics.txt", "the daemon's metrics", host::metrics(address));
    }
    into.try_add("journal.txt", "the last lines of vcc's units", host::journal());
    into.try_add("kernel.txt", "the last lines of the kernel about BPF", host::kernel_log());
    if let Some(log) = host::verifier_log().transpose() {
        into.try_add("verifier.txt", "the program that the kernel refused last", log);
    }
}

fn add_status(into: &mut Collection) -> Option<Status> {
    match status::ask() {
        Ok(status) => {
            into.add("status.txt", "vcc status", &status::report(&status));
            into.try_add("status.json", "vcc status --json", json(&status));
            Some(status)
        }
        Err(error) => {
            into.miss("status.txt, status.json", &error);
            None
        }
    }
}

fn add_policy(into: &mut Collection) {
    match policy::daemon().policy() {
        Ok(in_force) => {
            into.add("policy.toml", "the policy in force", &in_force.text);
            let shown = policy::parse(&in_force).map(|policy| policy::report(&policy));
            into.try_add("policy.txt", "vcc policy show", shown);
        }
        Err(error) => into.miss("policy.toml, policy.txt", &error.into()),
    }
}

fn add_ports(into: &mut Collection) -> Vec<PortView> {
    match ports::read(None) {
        Ok(Ports { ports, remarks }) => {
            remarks.iter().for_each(|remark| into.note(remark));
            into.add("ports.txt", "vcc ports", &ports::report(&ports));
            into.try_add("ports.json", "vcc ports --json", json(&ports::documents(&ports)));
            into.add("counters.txt", "all counters of each port", &counters(&ports));
            ports
        }
        Err(error) => {
            into.miss("ports.txt, ports.json, counters.txt", &error);
            Vec::new()
        }
    }
}

fn counters(ports: &[PortView]) -> String {
    use Align::{Left, Right};
    let mut table =
        Table::new([("PORT", Left), ("COUNTER", Left), ("SEGMENTS", Right), ("MEANING", Left)]);
    for port in ports {
        for counter in &port.counters {
            let (name, meaning) = (counter.name.to_owned(), counter.meaning.to_owned());
            table.row([port.port.clone(), name, counter.value.to_string(), meaning]);
        }
    }
    table.render()
}

/// Of the ports that the daemon has, and those that it does not know.
fn add_devices(into: &mut Collection, status: Option<&Status>, ports: &[PortView]) {
    let of_daemon = status.iter().flat_map(|status| &status.ports).map(|port| &port.device);
    let devices: BTreeSet<&String> = of_daemon.chain(ports.iter().map(|port| &port.port)).collect();
    if devices.is_empty() {
        return;
    }
    let around = match Around::read() {
        Ok(around) => around,
        Err(error) => return into.miss("devices", &error.into()),
    };
    for device in devices {
        let name = format!("devices/{device}.txt");
        let report = doctor::report_of_port(&around, device);
        into.try_add(name, "vcc doctor --device, without watching packets", report);
    }
}

fn add_flows(into: &mut Collection) {
    let mut flows = match Once::read(&[], |_| true) {
        Ok(Once { flows, .. }) => flows,
        Err(error) => return into.miss("flows.json", &error.into()),
    };
    let all = flows.len();
    let every = thin_out(&mut flows, MOST_FLOWS);
    if every > 1 {
        into.note(&format!("flows.json: has one of {every} connections; there were {all}"));
    }
    Tenants::ask().name(&mut flows);
    into.try_add("flows.json", "vcc flows --json", json(&flows));
}

/// Keeps one of N, so that all ports are among the rest, and returns N.
fn thin_out(flows: &mut Vec<FlowView>, most: usize) -> usize {
    let every = flows.len().div_ceil(most).max(1);
    let mut at = 0..;
    flows.retain(|_| at.next().is_some_and(|at: usize| at.is_multiple_of(every)));
    every
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| anyhow!(error))
}

#[cfg(test)]
mod tests {
    use vcc_view::testing::flow;

    use super::*;

    #[test]
    fn connections_are_thinned_out_evenly() {
        let guests = |count: u16, most| {
            let of = |number| flow(&format!("192.0.2.1:{number}"), "192.0.2.2:80");
            let mut flows: Vec<FlowView> = (0..count).map(of).collect();
            let every = thin_out(&mut flows, most);
            (every, flows.iter().map(|flow| flow.key.1.guest.port()).collect::<Vec<_>>())
        };
        assert_eq!(guests(0, 3), (1, vec![]));
        assert_eq!(guests(3, 3), (1, vec![0, 1, 2]));
        assert_eq!(guests(7, 3), (3, vec![0, 3, 6]));
    }
}
