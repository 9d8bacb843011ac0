//! vcc on the ports of an experiment's hosts.

use super::emulator::Control;
use super::hosts::Hosts;
use super::pools::Pools;
use super::traffic::{SenderView, Senders};
use crate::base::error::{Doing, Error, Result};
use crate::base::system::now_ns;
use crate::scenario::{MAX_FLOWS, Translation};
use std::fmt::Display;
use std::net::IpAddr;
use std::thread::{Builder, Scope, ScopedJoinHandle, sleep};
use std::time::Duration;
use vcc_fabric::HostId;
use vcc_port::{AttachOptions, Port};
use vcc_results::result::{Observation, PoolSeen};

/// The ports that vcc is attached to; dropping them detaches it.
pub struct Ports {
    ports: Vec<Watched>,
    pools: Option<Pools>,
    look_every: Duration,
}

struct Watched {
    host: HostId,
    address: IpAddr,
    /// The number of the flow that is looked at, if the host sends one.
    flow: Option<usize>,
    port: Port,
}

/// In shadow mode windows are compared continuously: a few times between acknowledgements.
const IN_THE_SHADOW: Duration = Duration::from_micros(200);
/// Counters are read for their last values only.
const NOW_AND_THEN: Duration = Duration::from_millis(100);

impl Ports {
    /// `flow_of` selects the flow to watch, of those that a host sends.
    pub fn attach(
        hosts: &Hosts,
        translations: &[(HostId, &Translation)],
        flow_of: &dyn Fn(HostId) -> Option<usize>,
    ) -> Result<Self> {
        let pools = pools_of(translations)?;
        let mut ports = Vec::new();
        let mut look_every = NOW_AND_THEN;
        for &(host, translation) in translations {
            let (namespace, device) = hosts
                .port(host)
                .ok_or_else(|| trouble(host, "it has no port: use hosts = \"veth\""))?;
            let port = namespace.inside(|| {
                let params = translation.params;
                let options =
                    &AttachOptions { max_flows: MAX_FLOWS, ..AttachOptions::from_params(params) };
                let port = match &pools {
                    Some(pools) if translation.is_pooled() => {
                        Port::attach_under(&pools.shared, host as u32, &device, options)
                    }
                    _ => Port::attach(&device, options),
                };
                port.map_err(|error| trouble(host, error))
            })?;
            ports.push(Watched { host, address: hosts.address(host), flow: flow_of(host), port });
            look_every = look_every.min(look_every_of(translation));
        }
        Ok(Self { ports, pools, look_every })
    }

    /// The pools' current use.
    pub fn pools(&self) -> Result<Vec<PoolSeen>> {
        let failed = |problem| Error::Attach { host: "the pools".into(), problem };
        self.pools.as_ref().map_or_else(|| Ok(Vec::new()), |pools| pools.seen().map_err(failed))
    }

    /// Watches the senders' flows, without real-time priority, until the run ends.
    pub fn observe<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        senders: &'scope Senders,
        control: &'scope Control,
    ) -> Result<ScopedJoinHandle<'scope, Result<Vec<Observation>>>> {
        Builder::new()
            .name("observer".into())
            .spawn_scoped(scope, || self.watch(senders, control))
            .doing(|| "start the observer's thread".into())
    }

    fn watch(&self, senders: &Senders, control: &Control) -> Result<Vec<Observation>> {
        let mut seen: Vec<Option<Observation>> = vec![None; self.ports.len()];
        while !control.is_stopped() && !self.ports.is_empty() {
            for (watched, seen) in self.ports.iter().zip(&mut seen) {
                if let Some(sender) = watched.flow.and_then(|flow| senders.get(flow)) {
                    observe(watched, seen, sender, control)?;
                }
            }
            sleep(self.look_every);
        }
        Ok(seen.into_iter().flatten().collect())
    }
}

fn look_every_of(translation: &Translation) -> Duration {
    if translation.is_compared() { IN_THE_SHADOW } else { NOW_AND_THEN }
}

fn pools_of(translations: &[(HostId, &Translation)]) -> Result<Option<Pools>> {
    let shares: Vec<_> = translations
        .iter()
        .filter_map(|(host, translation)| {
            Some((*host, translation.share.as_ref()?, translation.underlay().name()))
        })
        .collect();
    if shares.is_empty() {
        return Ok(None);
    }
    let failed = |problem| Error::Attach { host: "the pools".into(), problem };
    Pools::create(&shares).map(Some).map_err(failed)
}

fn trouble(host: HostId, problem: impl Display) -> Error {
    Error::Attach { host: format!("host {}", host + 1), problem: problem.to_string() }
}

fn observe(
    watched: &Watched,
    seen: &mut Option<Observation>,
    sender: &SenderView,
    control: &Control,
) -> Result<()> {
    let &Watched { host: guest, address, ref port, .. } = watched;
    let window = control.window();
    let (native, native_ns) = (sender.state()?, now_ns());
    let flows = port
        .flows()
        .map_err(|error| trouble(guest, format_args!("its flows cannot be read: {error}")))?;
    let ours_ns = now_ns();
    let Some(flow) = flows.iter().find(|flow| flow.guest.ip() == address) else { return Ok(()) };
    let state = &flow.state;
    let seen = seen.get_or_insert_with(|| Observation { guest, ..Observation::default() });
    seen.marks = state.marks;
    seen.reductions = state.reductions;
    seen.guest_cwrs = state.guest_cwrs;
    seen.retransmissions = state.retransmissions;
    seen.drops = state.drops.into();
    if !window.contains(native_ns) {
        return Ok(());
    }
    let flight_bytes = f64::from(state.flight_bytes());
    if flight_bytes > 0.0 {
        let cwnd_bytes = f64::from(state.cc.cwnd_segs) * f64::from(state.mss_bytes);
        seen.cwnd_errors.push((cwnd_bytes - flight_bytes).abs() / flight_bytes);
    }
    let since_start_us = |at_ns: u64| (at_ns - window.start_ns) / 1000;
    seen.tracking.note_native(since_start_us(native_ns), native);
    seen.tracking.note_ours(since_start_us(ours_ns), state.snd_una, state.cc.cwnd_segs);
    Ok(())
}
