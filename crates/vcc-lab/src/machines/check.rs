//! Checks of a file beyond the bounds of its single values.

use super::File;
use super::file::{CardKind, GuestKernel, Machines};
use crate::congestion_controls;
use crate::experiment::problem::{Problem, field};

type Checked = Result<(), Problem>;

pub fn check(file: &File) -> Checked {
    let duration = &file.header.duration;
    duration.refuse_phases()?;
    for (at, quick) in
        [(field!["duration", "warm_up_s"], false), (field!["duration", "quick", "warm_up_s"], true)]
    {
        if duration.schedule(quick).warm_up_s != 0.0 {
            return Err(Problem::new(at, "leave it out: transfers need no warm-up"));
        }
    }
    check_machines(&file.tables.machines)?;
    check_cases(file)
}

fn check_machines(machines: &Machines) -> Checked {
    if !(1..=15).contains(&machines.neighbours) {
        return Err(Problem::new(field!["machines", "neighbours"], "must be 1 to 15"));
    }
    if !(1..=10_000).contains(&machines.rate_mbps) {
        return Err(Problem::new(field!["machines", "rate_mbps"], "must be 1 to 10000"));
    }
    if machines.rtt_us > 1_000_000 {
        return Err(Problem::new(field!["machines", "rtt_us"], "must be at most 1000000"));
    }
    if machines.peer_initial_window_segs.is_some_and(|segs| !(1..=1000).contains(&segs)) {
        let at = field!["machines", "peer_initial_window_segs"];
        return Err(Problem::new(at, "must be 1 to 1000"));
    }
    if machines.tcp_counters && machines.verdicts.is_some() {
        let text = "excludes `verdicts`: the port judges, and the guest counts";
        return Err(Problem::new(field!["machines", "tcp_counters"], text));
    }
    check_sizes(&machines.sizes).map_err(|it| Problem::new(field!["machines", "sizes"], it))?;
    if let Some(verdicts) = &machines.verdicts {
        let at = |name: &str| field!["machines", "verdicts", name];
        if !(1..=1000).contains(&verdicts.asks) {
            return Err(Problem::new(at("asks"), "must be 1 to 1000"));
        }
        check_sizes(&[verdicts.ask_bytes]).map_err(|text| Problem::new(at("ask_bytes"), text))?;
        check_sizes(&[verdicts.peer_window_bytes])
            .map_err(|text| Problem::new(at("peer_window_bytes"), text))?;
    }
    Ok(())
}

fn check_cases(file: &File) -> Checked {
    for (index, entry) in file.entries.iter().enumerate() {
        let case = &entry.own;
        let at = |name: &str| field!["cases", index, name];
        if let Some(sizes) = &case.sizes {
            check_sizes(sizes).map_err(|text| Problem::new(at("sizes"), text))?;
        }
        if case.card != CardKind::Domain && !case.options.is_empty() {
            return Err(Problem::new(at("options"), "they are those of `card = \"domain\"`"));
        }
        if case.card == CardKind::Passt && file.tables.machines.verdicts.is_some() {
            let text = "must be 'tap' or 'domain': passt has no port for `verdicts`";
            return Err(Problem::new(at("card"), text));
        }
        if case.kernel == GuestKernel::Debian && case.tcp.pvtcp.is_some() {
            let text = "needs a `kernel` with PVTCP: 'pvtcp-6.12' or 'pvtcp-7.3'";
            return Err(Problem::new(field!["cases", index, "tcp", "pvtcp"], text));
        }
        if case.kernel == GuestKernel::Debian && case.rto_min_ms.is_some() {
            let text = "needs Linux 6.11 or newer: `kernel` 'pvtcp-6.12' or 'pvtcp-7.3'";
            return Err(Problem::new(at("rto_min_ms"), text));
        }
        if case.kernel != GuestKernel::Debian && case.congestion_control.is_some() {
            let text = "needs `kernel` 'debian': those with PVTCP have no BPF";
            return Err(Problem::new(at("congestion_control"), text));
        }
        if case.queue_ms > 1000 {
            return Err(Problem::new(at("queue_ms"), "must be at most 1000"));
        }
        if case.busy > 100 {
            return Err(Problem::new(at("busy"), "must be at most 100"));
        }
        let custom = case.congestion_control.as_deref();
        if let Some(name) = custom.filter(|name| !congestion_controls::names().contains(name)) {
            let known = congestion_controls::names().join(", ");
            let text = format!("there is no '{name}': there are {known}");
            return Err(Problem::new(at("congestion_control"), text));
        }
        let is_before = |name: &String| file.entries[..index].iter().any(|it| it.name == *name);
        if let Some(other) = case.against.as_ref().filter(|name| !is_before(name)) {
            let text = format!("there is no case '{other}' before it");
            return Err(Problem::new(at("against"), text));
        }
    }
    Ok(())
}

fn check_sizes(sizes: &[u32]) -> Result<(), &'static str> {
    let fits = |bytes: &u32| (1000..=100_000_000).contains(bytes);
    match !sizes.is_empty() && sizes.iter().all(fits) {
        true => Ok(()),
        false => Err("must be 1000 to 100000000 bytes, at least one of them"),
    }
}
