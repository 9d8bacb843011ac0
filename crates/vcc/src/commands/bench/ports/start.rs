//! A start with all devices there, and a restart.

use std::time::{Duration, Instant};

use anyhow::ensure;
use vcc_port::Port;
use vcc_results::report::bench::Figure;

use super::super::devices::{Devices, ip};
use super::super::figures::figure;
use super::daemon::{Daemon, Place};
use super::memory;

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
    again.daemon.end()?;
    figures.push(timed("detach", "`vcc detach --all --now`", || place.vcc("detach --all --now"))?);
    Ok(figures)
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
