//! Problems that the operator has to solve. `vcc status`, the health page, the metrics and the
//! page's events show them. Each kind of problem is a function in [`KINDS`].

use vcc_port::coexistence::Severity;
use vcc_web::snapshot::Problem;

use crate::ports::{Ports, Unattached, describe_blindness};

/// A refused policy is not in this list: the daemon and its page report it separately.
const KINDS: [fn(&Ports, &mut Vec<Problem>); 10] = [
    no_ports,
    misjoined_ports,
    misnamed_ports,
    silent_ports,
    short_ports,
    blind_ports,
    hidden_ports,
    full_host,
    still_wheels,
    other_policy,
];

pub(crate) fn find(ports: &Ports) -> Vec<Problem> {
    let mut problems = Vec::new();
    for kind in KINDS {
        let first = problems.len();
        kind(ports, &mut problems);
        problems[first..].sort_by(|a, b| a.what.cmp(&b.what));
    }
    problems
}

/// Possible interference, which only an operator who knows the other program can judge. The health
/// page does not count these.
pub(crate) fn warnings(ports: &Ports) -> Vec<Problem> {
    host_devices(ports).into_iter().chain(neighbours(ports, Severity::Warning)).collect()
}

/// Devices of the host itself that a pattern of the policy matches, in one warning.
pub(crate) fn host_devices(ports: &Ports) -> Option<Problem> {
    let device = |left: &Unattached| format!("{} ({})", left.link.name, left.reason);
    let mut devices: Vec<String> = ports.of_host().map(device).collect();
    devices.sort();
    let what = format!(
        "a pattern of [[ports]] also matches devices of the host itself, to which vcc does not attach by a \
         pattern: {}; match guests' devices alone, or name such a device in full in a [[ports]] before the pattern",
        devices.join(", ")
    );
    (!devices.is_empty()).then(|| problem("policy", what))
}

fn neighbours(ports: &Ports, severity: Severity) -> impl Iterator<Item = Problem> {
    let all = ports.neighbours().filter(move |(_, finding)| finding.severity == severity);
    all.map(|(device, finding)| problem(device, finding.describe(device)))
}

fn problem(about: &str, what: String) -> Problem {
    Problem { about: about.to_owned(), what }
}

fn no_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(ports.left().map(|left| {
        let device = &left.link.name;
        problem(device, format!("{device} is not a port: {}", left.reason))
    }));
}

fn misjoined_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(ports.misjoined().into_iter().map(|(device, what)| problem(device, what)));
}

fn misnamed_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(ports.misnamed().map(|device| {
        let what = format!(
            "{device} was renamed to a name that is not UTF-8 and keeps its previous rules: rename it"
        );
        problem(device, what)
    }));
}

fn silent_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(ports.silent().map(|(device, why)| {
        problem(device, format!("{device}: cannot send to the guest: {why}"))
    }));
}

fn short_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(ports.short().map(|(device, what)| problem(device, what)));
}

fn blind_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(
        ports.blind().map(|(device, packets)| problem(device, describe_blindness(device, packets))),
    );
}

/// Other programs that make traffic pass untranslated. Possible interference is a warning: see
/// [`warnings`].
fn hidden_ports(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(neighbours(ports, Severity::Problem));
}

fn full_host(ports: &Ports, problems: &mut Vec<Problem>) {
    const FULL_PERCENT: u64 = 90;
    match ports.host().connections() {
        Ok((used, max)) if u64::from(used) * 100 >= u64::from(max) * FULL_PERCENT => {
            let what = format!(
                "the table of all ports is nearly full: {used} of {max} connections; when it is full, \
                 each port has room for few more (`vcc ports` shows whose they are)"
            );
            problems.push(problem("host", what));
        }
        Ok(_) => {}
        Err(error) => problems.push(problem("host", error.to_string())),
    }
}

/// Where the kernel has no timers and the daemon turns the wheels.
fn still_wheels(ports: &Ports, problems: &mut Vec<Problem>) {
    problems.extend(ports.still().map(|why| {
        let what = format!("ended connections of all ports are not removed: {why}");
        problem("host", what)
    }));
}

fn other_policy(ports: &Ports, problems: &mut Vec<Problem>) {
    match ports.shared().epoch() {
        Ok(epoch) if epoch == ports.epoch() => {}
        Ok(epoch) => {
            let what = format!(
                "another process put epoch {epoch} in force: reload with `vcc policy apply`"
            );
            problems.push(problem("policy", what));
        }
        Err(error) => problems.push(problem("policy", error.to_string())),
    }
}
