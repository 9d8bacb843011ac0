//! A turn: transfers and new connections, with a flood at the same time or without.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use vcc_port::Port;

use super::bed::{Bed, FLOODER, Guest};
use super::load::{Load, Phase};

/// A million a minute fill the share of a table of the default size that handshakes have within it.
const WARM_UP: Duration = Duration::from_millis(1200);
const GREEDY_WARM_UP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(1000);
/// A guest opens a connection about so often.
const CONNECT_EVERY: Duration = Duration::from_millis(10);
/// The connections of a guest before the flood. Those of the flooder are idle.
const CONNECTIONS: usize = 2;

pub struct Turn {
    /// Of the flood, or 0.
    pub syns_a_minute: f64,
    /// The rate at which bytes arrived over the transfers of all guests.
    pub paced_bps: f64,
    pub greedy_bps: f64,
    /// How long each new connection of the others took, in microseconds.
    pub connect_us: Vec<f64>,
    /// Connections that there are, old and new, and those of them that their ports know: of the
    /// others, and the flooder's own.
    pub others: Known,
    pub own: Known,
    /// Half-open connections at the flooder's port.
    pub half_open: u32,
}

#[derive(Clone, Copy, Default)]
pub struct Known {
    pub there: usize,
    pub known: usize,
}

/// Connections of a guest: its ends, and the host's.
type Opened = Vec<(TcpStream, TcpStream)>;

struct Measured {
    paced_bps: f64,
    greedy_bps: f64,
    connect_us: Vec<f64>,
    others: Known,
    own: Known,
    half_open: u32,
}

pub fn take(bed: &mut Bed, syns_a_second: Option<u32>) -> anyhow::Result<Turn> {
    let Bed { guests, flood, ports } = bed;
    let old = guests
        .iter()
        .map(|guest| (0..CONNECTIONS).map(|_| guest.connect()).collect())
        .collect::<anyhow::Result<Vec<Opened>>>()?;
    let (load, is_over) = (&Load::new(), &AtomicBool::new(false));
    let (measured, syns_a_second) = thread::scope(|scope| {
        let flooding = syns_a_second.map(|rate| scope.spawn(move || flood.run(rate, is_over)));
        let measured = measure(scope, load, guests, ports, old);
        load.set(Phase::Over);
        is_over.store(true, Ordering::Relaxed);
        (measured, flooding.map(joined).transpose())
    });
    let Measured { paced_bps, greedy_bps, connect_us, others, own, half_open } = measured?;
    let syns_a_minute = syns_a_second?.unwrap_or(0.0) * 60.0;
    Ok(Turn { syns_a_minute, paced_bps, greedy_bps, connect_us, others, own, half_open })
}

fn measure<'scope>(
    scope: &'scope Scope<'scope, '_>,
    load: &'scope Load,
    guests: &'scope [Guest],
    ports: &[Port],
    mut opened: Vec<Opened>,
) -> anyhow::Result<Measured> {
    let mut transfers: Vec<ScopedJoinHandle<io::Result<()>>> = Vec::new();
    for (guest, host) in opened.iter().skip(FLOODER + 1).flatten() {
        let (guest, host) = (guest.try_clone()?, host.try_clone()?);
        transfers.push(scope.spawn(move || load.send(guest)));
        transfers.push(scope.spawn(move || load.receive(host)));
    }
    thread::sleep(WARM_UP);
    let opening: Vec<_> = guests.iter().map(|guest| scope.spawn(move || open(guest))).collect();
    let paced_bps = load.goodput_bps(MEASURED);
    let mut connect_us = Vec::new();
    for (number, opening) in opening.into_iter().enumerate() {
        let (new, took_us) = joined(opening)?;
        opened[number].extend(new);
        if number != FLOODER {
            connect_us.extend(took_us);
        }
    }
    load.set(Phase::Greedy);
    thread::sleep(GREEDY_WARM_UP);
    let greedy_bps = load.goodput_bps(MEASURED);
    load.set(Phase::Over);
    transfers.into_iter().try_for_each(joined).context("a transfer failed")?;
    let mut others = Known::default();
    let mut own = Known::default();
    for (number, (port, opened)) in ports.iter().zip(&opened).enumerate() {
        let known = known(port, opened)?;
        let of = if number == FLOODER { &mut own } else { &mut others };
        of.there += opened.len();
        of.known += known;
    }
    let usage = ports.get(FLOODER).map(Port::usage).transpose()?;
    let half_open = usage.map_or(0, |usage| usage.half_open);
    Ok(Measured { paced_bps, greedy_bps, connect_us, others, own, half_open })
}

/// Opens connections while a goodput is measured. Returns how long each took, too.
fn open(guest: &Guest) -> anyhow::Result<(Opened, Vec<f64>)> {
    guest.inside(|| {
        let begin = Instant::now();
        let mut opened = Vec::new();
        let mut took_us = Vec::new();
        while begin.elapsed() < MEASURED {
            let before = Instant::now();
            let end = guest.open().context("a guest cannot connect")?;
            took_us.push(before.elapsed().as_secs_f64() * 1e6);
            opened.push((end, guest.accept()?));
            thread::sleep(CONNECT_EVERY);
        }
        Ok((opened, took_us))
    })?
}

/// How many of a guest's connections its port knows.
fn known(port: &Port, opened: &Opened) -> anyhow::Result<usize> {
    let flows = port.flows()?;
    let known: HashSet<SocketAddr> = flows.iter().map(|flow| flow.guest).collect();
    let there = opened.iter().map(|(guest, _)| guest.local_addr());
    let there = there.collect::<io::Result<Vec<_>>>()?;
    Ok(there.iter().filter(|address| known.contains(address)).count())
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
