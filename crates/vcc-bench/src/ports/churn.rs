//! Devices that come and go under a running daemon.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use vcc_port::Port;
use vcc_port::links::{self, LinkNews};
use vcc_results::report::bench::Figure;

use super::super::devices::Devices;
use super::super::figures::figure;
use super::daemon::{Daemon, Place};
use super::memory;

/// How long each device is there.
const LIFETIME: Duration = Duration::from_secs(1);
/// How long the last news may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Deleting a device waits for the kernel, mostly without RTNL.
const DELETERS: usize = 4;

pub fn measure(singles: u32, per_s: u32, churn: Duration) -> anyhow::Result<Vec<Figure>> {
    let place = Place::create()?;
    place.set_policy("churn*")?;
    let (daemon, _) = Daemon::start(&place)?;
    let (sender, news) = mpsc::channel();
    links::watch(move |news| sender.send((Instant::now(), news)).is_ok())?;
    let watched = Watched { daemon, news };

    let alone = one_at_a_time(&watched, singles)?;
    let mut figures = percentiles("alone", "from the news of a device to its port", &alone);
    let before = (memory::resident_kb(watched.daemon.pid())?, memory::kernel_kb()?);
    let (created, delays) = come_and_go(&watched, per_s, churn)?;
    figures.push(figure("churn", "devices that came and went", f64::from(created), "devices"));
    let missed = f64::from(created) - delays.len() as f64;
    figures.push(figure("missed", "that never became ports", missed, "devices"));
    figures.extend(percentiles("churn", "from the news of one to its port", &delays));
    let left = Port::list()?.len() as f64;
    figures.push(figure("left", "ports left when all had gone", left, "ports"));
    let grown = memory::resident_kb(watched.daemon.pid())? - before.0;
    figures.push(figure("daemon_grown", "growth of the daemon's memory", grown, "KB"));
    let grown = memory::kernel_kb()? - before.1;
    figures.push(figure("kernel_grown", "growth of the kernel's memory", grown, "KB"));
    watched.daemon.end()?;
    place.vcc("detach --all --now")?;
    Ok(figures)
}

struct Watched {
    daemon: Daemon,
    news: Receiver<(Instant, LinkNews)>,
}

impl Watched {
    /// When each device appeared, by its name, according to the kernel's news so far.
    fn appeared(&self) -> HashMap<String, Instant> {
        let mut appeared = HashMap::new();
        while let Ok((at, news)) = self.news.try_recv() {
            if let LinkNews::Is(link) = news {
                appeared.entry(link.name).or_insert(at);
            }
        }
        appeared
    }

    /// When a device appeared. The thread that watches may run later than the daemon.
    fn appeared_at(&self, device: &str) -> Option<Instant> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left).ok()? {
                (at, LinkNews::Is(link)) if link.name == device => return Some(at),
                _ => {}
            }
        }
    }

    /// The next device that the daemon makes a port, and when; None after `patience`.
    fn attached(&self, patience: Duration) -> Option<(String, Instant)> {
        let until = Instant::now() + patience;
        loop {
            let (at, line) = self.daemon.next_line(until - Instant::now().min(until))?;
            if let Some((device, _)) = line.split_once(": attached, port ") {
                // In front is the priority of the journal's line.
                return Some((device.rsplit('>').next().unwrap_or(device).to_owned(), at));
            }
        }
    }
}

fn one_at_a_time(watched: &Watched, devices: u32) -> anyhow::Result<Vec<Duration>> {
    let mut ip = Devices::begin()?;
    let mut delays = Vec::new();
    for at in 0..devices {
        let name = format!("churn-{at}");
        ip.create(&name)?;
        let (device, attached) =
            watched.attached(PATIENCE).with_context(|| format!("{name} became no port"))?;
        ensure!(device == name, "{device} became a port instead of {name}");
        let appeared = watched.appeared_at(&name).with_context(|| format!("no news of {name}"))?;
        delays.push(attached.saturating_duration_since(appeared));
        ip.delete(&name)?;
    }
    ip.finish()?;
    Ok(delays)
}

/// Returns the number of devices, and from the news to the port of each that became one.
fn come_and_go(
    watched: &Watched,
    per_s: u32,
    time: Duration,
) -> anyhow::Result<(u32, Vec<Duration>)> {
    let total = (time.as_secs_f64() * f64::from(per_s)).round() as u32;
    let pause = Duration::from_secs(1) / per_s;
    let name = |at: u32| format!("churn{at}");
    let mut creator = Devices::begin()?;
    let deleters: anyhow::Result<Vec<_>> = (0..DELETERS).map(|_| Devices::begin()).collect();
    let mut deleters = deleters?;
    let began = Instant::now();
    let alive = (LIFETIME.as_secs_f64() * f64::from(per_s)) as u32;
    for tick in 0..total + alive {
        let due = began + pause * tick;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if tick < total {
            creator.create(&name(tick))?;
        }
        if let Some(at) = tick.checked_sub(alive) {
            deleters[at as usize % DELETERS].delete(&name(at))?;
        }
    }
    creator.finish()?;
    deleters.into_iter().try_for_each(Devices::finish)?;
    let mut attached = HashMap::new();
    while let Some((device, at)) = watched.attached(LIFETIME) {
        attached.insert(device, at);
    }
    let appeared = watched.appeared();
    let delay =
        |(name, at): (&String, &Instant)| Some(at.saturating_duration_since(*appeared.get(name)?));
    let delays = attached.iter().filter_map(delay).collect();
    Ok((total, delays))
}

fn percentiles(name: &str, what: &str, delays: &[Duration]) -> Vec<Figure> {
    let mut ms: Vec<f64> = delays.iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    [("p50", 0.5), ("p99", 0.99), ("max", 1.0)]
        .into_iter()
        .map(|(which, share)| {
            let what = format!("{what}, {which} of {}", ms.len());
            let rank = (ms.len() as f64 * share).ceil() as usize;
            let value = ms.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN);
            figure(&format!("{name}_{which}"), &what, value, "ms")
        })
        .collect()
}
