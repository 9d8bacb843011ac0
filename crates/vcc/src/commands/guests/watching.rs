//! Watches the connections of ports.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use vcc_engine::{FlowState, sys};
use vcc_overlay::Watch;
use vcc_port::{Error, FlowId};
use vcc_view::guests::{Connection, GuestEcn, observation, visible};
use vcc_view::{Counted, CpuWatch, GuestCpu, Recording, Source};

use crate::interrupt;

/// The interval at which recordings or flow tables are read. The ring has room for about a thousand ACKs.
const EVERY: Duration = Duration::from_millis(5);
/// After reading a large table, pause so many times as long: a fifth of a CPU at most.
const REST: u32 = 4;
/// Per port; each connection takes about 20 KiB.
const FLOWS_MAX: usize = 1000;

pub struct Watching {
    ports: Vec<Watched>,
    cpus: CpuWatch,
}

struct Watched {
    port: Source,
    /// None if the port has another recording: then the flow table is read instead.
    trace: Option<Recording>,
    lost: u64,
    flows: HashMap<FlowId, Flow>,
    has_ended: bool,
}

struct Flow {
    watch: Watch,
    last: FlowState,
    /// Whether no ACK was lost since `last`.
    is_whole: bool,
}

pub struct Seen {
    pub connections: Vec<Connection>,
    pub lost: u64,
    pub unwatched: usize,
    /// Ports that ended meanwhile. Under which rules their connections were is not known any more.
    pub ended: Vec<String>,
    /// Why virtual CPUs could not be watched.
    pub problems: Vec<String>,
}

impl Watching {
    pub fn begin(ports: Vec<Source>) -> Self {
        let cpus = CpuWatch::begin(&ports);
        let watched = |port: Source| {
            let trace = port.record(None).ok();
            Watched { port, trace, lost: 0, flows: HashMap::new(), has_ended: false }
        };
        Self { ports: ports.into_iter().map(watched).collect(), cpus }
    }

    pub fn watch(&mut self, length: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + length;
        let reads_tables = self.ports.iter().any(|watched| watched.trace.is_none());
        while !interrupt::came() && Instant::now() < until {
            let begin = Instant::now();
            for watched in &mut self.ports {
                watched.unless_ended(Watched::take)?;
            }
            let rest = if reads_tables { REST * begin.elapsed() } else { EVERY };
            thread::sleep(rest.max(EVERY).min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Includes the connections without any ACK.
    pub fn end(mut self) -> anyhow::Result<Seen> {
        let problems = self.cpus.problems().to_vec();
        let mut seen =
            Seen { connections: Vec::new(), lost: 0, unwatched: 0, ended: Vec::new(), problems };
        for (watched, cpu) in self.ports.iter_mut().zip(self.cpus.end()) {
            watched.unless_ended(|watched| {
                watched.take()?;
                watched.end(&mut seen, cpu.as_ref())
            })?;
            if watched.has_ended {
                seen.ended.push(watched.port.device().to_owned());
            } else {
                seen.lost += watched.lost;
            }
        }
        Ok(seen)
    }
}

impl Watched {
    /// One port's end does not end the others' watch.
    fn unless_ended(
        &mut self,
        read: impl FnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.has_ended {
            return Ok(());
        }
        match read(self) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::NotAttached { .. })) => {
                self.has_ended = true;
                Ok(())
            }
            read => read,
        }
    }

    fn take(&mut self) -> anyhow::Result<()> {
        let Some(trace) = &mut self.trace else {
            self.port.read_again()?;
            let at_us = vcc_port::monotonic().as_micros() as u64;
            for flow in self.port.flows()? {
                note(&mut self.flows, flow.id(), at_us, &flow.state, false);
            }
            return Ok(());
        };
        while let Some(event) = trace.next(Duration::ZERO)? {
            note(&mut self.flows, event.flow.id(), event.at_us, &event.flow.state, true);
        }
        let lost = trace.lost()?;
        if lost != self.lost {
            self.lost = lost;
            self.flows.values_mut().for_each(|flow| flow.is_whole = false);
        }
        Ok(())
    }

    fn end(&mut self, seen: &mut Seen, cpu: Option<&GuestCpu>) -> anyhow::Result<()> {
        self.port.read_again()?;
        let (params, rules) = (self.port.params()?, self.port.rules()?);
        let now_us = vcc_port::monotonic().as_micros() as u64;
        let mut at_end = HashMap::new();
        for flow in self.port.flows()? {
            at_end.insert(flow.id(), flow.state);
            if self.flows.contains_key(&flow.id()) || is_closed(&flow.state) {
                continue;
            }
            seen.unwatched += usize::from(self.flows.len() >= FLOWS_MAX);
            let fresh = Flow { watch: Watch::default(), last: flow.state, is_whole: false };
            self.flows.insert(flow.id(), fresh);
        }
        for (id, flow) in &self.flows {
            let rule = rules.rule_of(&flow.last);
            let params = rule.as_ref().map_or(&params, |rule| rule.params);
            // Only the port's present state shows the answers that are still due.
            let waits = at_end
                .get(id)
                .filter(|state| continues(state, &flow.last))
                .map_or(flow.last, |state| state.with_open_wait(params, now_us));
            seen.connections.push(Connection {
                port: self.port.device().to_owned(),
                id: *id,
                ecn: GuestEcn::from_state(&flow.last, params),
                guess: visible(&flow.last, params, || flow.watch.guess()),
                guest_delay_us: waits.guest_delay_us(),
                fabric_delay_us: waits.fabric_delay_us(),
                cpu: cpu.cloned(),
            });
        }
        Ok(())
    }
}

fn note(
    flows: &mut HashMap<FlowId, Flow>,
    id: FlowId,
    at_us: u64,
    state: &FlowState,
    is_each: bool,
) {
    let has_room = flows.len() < FLOWS_MAX || flows.contains_key(&id);
    match flows.get_mut(&id).filter(|flow| continues(state, &flow.last)) {
        Some(flow) => {
            let before = Some(&flow.last).filter(|_| is_each && flow.is_whole);
            flow.watch.note(&observation(at_us, before, state));
            (flow.last, flow.is_whole) = (*state, true);
        }
        None if has_room => {
            let mut watch = Watch::default();
            watch.note(&observation(at_us, None, state));
            flows.insert(id, Flow { watch, last: *state, is_whole: true });
        }
        None => {}
    }
}

/// Is it the same connection?
fn continues(state: &FlowState, last: &FlowState) -> bool {
    Counted::from_state(state).continues(&Counted::from_state(last))
}

fn is_closed(state: &FlowState) -> bool {
    u32::from(state.stage) == sys::STAGE_CLOSED
}
