//! A start with all devices there, a restart, and an upgrade.

use std::time::{Duration, Instant};

use anyhow::ensure;
use vcc_port::{Host, Port};
use vcc_results::report::bench::Figure;

use super::super::devices::{Devices, ip};
use super::super::figures::figure;
use super::daemon::{Daemon, Place};
use super::memory;
use super::talk::{CONNECTIONS, Talk};

pub fn measure(ports: u32) -> anyhow::Result<Vec<Figure>> {
    ip("link set lo up")?;
    let mut devices = Devices::begin()?;
    for at in 0..ports {
        devices.create(&format!("port{at}"))?;
    }
    devices.finish()?;
    let place = Place::create()?;
    let one = start(&place, "port0", 1)?;
    one.daemon.end()?;
    place.vcc("detach --all --now")?;

    let all = start(&place, "port*", ports)?;
    let others = f64::from(ports - 1);
    let cpu_s = all.daemon.cpu_s()?;
    let mut figures = vec![
        figure("first", "start of `vcc run`, to the only port enforced", seconds(one.took), "s"),
        figure("start", &format!("to the last of {ports} enforced"), seconds(all.took), "s"),
        figure("start_cpu", "CPU for that", cpu_s, "s"),
        figure(
            "each",
            "for each port after the first",
            seconds(all.took.saturating_sub(one.took)) * 1e3 / others,
            "ms",
        ),
        figure(
            "kernel",
            "memory of the kernel for each port after the first",
            (all.kernel_kb - one.kernel_kb) / others,
            "KB",
        ),
        figure(
            "daemon",
            "memory of the daemon",
            memory::resident_kb(all.daemon.pid())? / 1e3,
            "MB",
        ),
        timed("ports", "`vcc ports`", || place.vcc("ports"))?,
        timed("flows", "`vcc flows --json`", || place.vcc("flows --json"))?,
        timed("metrics", "/metrics", || all.daemon.get("/metrics").map(drop))?,
        timed("page", "the web page's figures", || all.daemon.get("/api/snapshot.json").map(drop))?,
    ];
    all.daemon.end()?;
    let again = start(&place, "port*", ports)?;
    figures.push(figure("adopt", "a restart, to all adopted", seconds(again.took), "s"));
    figures.extend(upgrade(&place, again.daemon, ports)?);
    figures.push(timed("detach", "`vcc detach --all --now`", || place.vcc("detach --all --now"))?);
    Ok(figures)
}

/// As another version of vcc finds the ports: with other programs than its own.
fn upgrade(place: &Place, running: Daemon, ports: u32) -> anyhow::Result<Vec<Figure>> {
    let talk = Talk::begin()?;
    let before = talk.known()?;
    ensure!(before.len() == CONNECTIONS, "{} of {CONNECTIONS} connections are known", before.len());
    running.end()?;
    Host::open()?.make_stale()?;
    let upgraded = start(place, "port*", ports)?;
    let (_, is_stale) = Host::open()?.take_over()?;
    ensure!(!is_stale, "the programs were not replaced");
    let after = talk.known()?;
    let forgotten = before.iter().filter(|id| !after.contains(id)).count();
    upgraded.daemon.end()?;
    let talked = talk.end()?;
    let what = format!("an upgrade under {CONNECTIONS} connections that talk, to all replaced");
    Ok(vec![
        figure("upgrade", &what, seconds(upgraded.took), "s"),
        figure("upgrade_trips", "round trips meanwhile", f64::from(talked.round_trips), "times"),
        figure("upgrade_longest", "the longest of them", seconds(talked.longest) * 1e3, "ms"),
        figure(
            "upgrade_retransmitted",
            "segments retransmitted",
            f64::from(talked.retransmitted),
            "segments",
        ),
        figure("upgrade_forgotten", "connections forgotten", forgotten as f64, "connections"),
    ])
}

struct Started {
    daemon: Daemon,
    took: Duration,
    /// More than before.
    kernel_kb: f64,
}

fn start(place: &Place, devices: &str, ports: u32) -> anyhow::Result<Started> {
    place.set_policy(devices)?;
    let before_kb = memory::kernel_kb()?;
    let (daemon, ready) = Daemon::start(place)?;
    let there = Port::list()?.len();
    ensure!(there == ports as usize, "{there} of {ports} devices are ports");
    let kernel_kb = memory::kernel_kb()? - before_kb;
    let took = ready - daemon.began;
    Ok(Started { daemon, took, kernel_kb })
}

fn timed(
    name: &str,
    what: &str,
    run: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Figure> {
    let began = Instant::now();
    run()?;
    Ok(figure(name, what, seconds(began.elapsed()), "s"))
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
