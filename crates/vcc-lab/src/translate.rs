//! vcc on the ports of an experiment's hosts.

use crate::emulator::Control;
use crate::error::{Doing, Error, Result};
use crate::experiment::{Bytes, Vcc, VccMode};
use crate::fabric::HostId;
use crate::hosts::Hosts;
use crate::overlay::Guessed;
use crate::pools::{Part, PoolSeen, Pools};
use crate::system::now_ns;
use crate::tracking::Tracking;
use crate::traffic::{SenderView, Senders};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::thread::{Builder, Scope, ScopedJoinHandle, sleep};
use std::time::Duration;
use vcc_engine::{FlowState, Mode, Params, Segment, Treatment, sys};
use vcc_port::{AttachOptions, Port};

/// How vcc treats one guest.
#[derive(Debug, Clone)]
pub struct Translation {
    options: AttachOptions,
    /// Where it shares a window with others.
    part: Option<Part>,
}

/// The field that is wrong, and what it may be.
type Refusal = (&'static str, String);

/// Flows are read many times a second, and the kernel goes through the whole table for that.
const MAX_FLOWS: u32 = 1024;

/// The underlay that computes no window.
const TRANSPARENT: &str = "transparent";

/// What an experiment file says, as vcc wants to hear it.
fn treatment(vcc: &Vcc, mode: Mode) -> std::result::Result<Treatment, Refusal> {
    let mut treatment = Treatment { mode, ..Treatment::default() };
    if let Some(name) = &vcc.underlay {
        treatment.underlay = name.parse().map_err(refusal("underlay"))?;
    }
    if let Some(name) = &vcc.guest_ecn {
        treatment.guest_ecn = name.parse().map_err(refusal("guest_ecn"))?;
    }
    treatment.prr = vcc.prr.unwrap_or(treatment.prr);
    treatment.undo = vcc.undo.unwrap_or(treatment.undo);
    treatment.pace_push = vcc.pace_push.unwrap_or(treatment.pace_push);
    if let Some(segs) = vcc.floor_segs {
        treatment.window_floor_segs = segs.get();
    }
    treatment.police = vcc.police.unwrap_or(treatment.police);
    treatment.feedback = vcc.feedback.unwrap_or(treatment.feedback);
    if let Some(beta) = vcc.beta {
        treatment.beta_1024 = (beta.get() * 1024.0).round() as u16;
    }
    treatment.cap_bytes = vcc.cap_bytes.and_then(|cap| NonZeroU32::new(cap.get()));
    if let Some(cap_mbps) = vcc.cap_mbps {
        // 125 bytes a millisecond are a megabit a second.
        treatment.cap_bytes_per_ms = NonZeroU32::new((cap_mbps.get() * 125.0).round() as u32);
    }
    Ok(treatment)
}

fn refusal<E: Display>(field: &'static str) -> impl Fn(E) -> Refusal {
    move |error| (field, error.to_string())
}

impl Translation {
    /// None where vcc is off.
    /// `pools` are those of the experiment.
    pub fn new(
        vcc: &Vcc,
        pools: &BTreeMap<String, Bytes>,
    ) -> std::result::Result<Option<Self>, Refusal> {
        let mode = match vcc.mode {
            VccMode::Off => return Ok(None),
            VccMode::Enforce => Mode::Enforce,
            VccMode::Shadow => Mode::Shadow,
        };
        let treatment = treatment(vcc, mode)?;
        let part = Part::new(vcc.pool.as_ref(), vcc.weight, pools)?;
        let plain = Treatment { underlay: treatment.underlay, ..Treatment::default() };
        if part.is_some() && treatment != plain {
            let text = "takes nothing beside it but 'mode = \"enforce\"', 'underlay' and 'weight'";
            return Err(("pool", text.into()));
        }
        Ok(Some(Self { options: AttachOptions { treatment, max_flows: MAX_FLOWS }, part }))
    }

    /// The same port in a driver domain. A shadow's keeps what it is compared by.
    pub fn port(&self) -> vcc_domain::Port {
        let max_flows = self.options.max_flows as usize;
        let mut port = vcc_domain::Port::new(self.options.treatment.params(), max_flows);
        if self.is_shadow() {
            port.trace();
        }
        port
    }

    /// With as much room for connections as vcc has by default, for those who read them seldom.
    pub fn for_many_flows(&self) -> AttachOptions {
        AttachOptions::of(self.options.treatment.clone())
    }

    /// Whether it shares a window, which takes the datapath's ledger.
    pub fn is_pooled(&self) -> bool {
        self.part.is_some()
    }

    /// Whether it only looks on.
    pub fn is_shadow(&self) -> bool {
        self.options.treatment.mode == Mode::Shadow
    }

    /// Whether it computes a window that is compared with its host's own.
    pub fn is_compared(&self) -> bool {
        self.is_shadow() && self.options.treatment.underlay.name() != TRANSPARENT
    }

    /// Whether it changes what its host sends and receives.
    pub fn enforces(&self) -> bool {
        self.options.treatment.mode == Mode::Enforce
    }

    /// Whether it makes a guest without ECN an ECN one to the fabric. The engine is asked: does
    /// a plain SYN leave it as an ECN-setup SYN (RFC 3168, 6.1.1)?
    pub fn gives_ecn(&self) -> bool {
        let mut params = Params::default();
        params.0.underlay = self.options.treatment.underlay.number();
        params.0.mode = self.options.treatment.mode.number();
        let syn = Segment { now_us: 1, flags: sys::TCP_SYN as u16, ..Segment::default() };
        let action = FlowState::default().from_guest(&params, &syn);
        let ecn_setup = (sys::TCP_ECE | sys::TCP_CWR) as u16;
        action.flags & ecn_setup == ecn_setup
    }

    fn look_every(&self) -> Duration {
        if self.is_compared() { IN_THE_SHADOW } else { NOW_AND_THEN }
    }
}

/// What a port knows of its guest's flow.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Observation {
    /// Number of the guest.
    pub guest: usize,
    pub marks: u32,
    pub reductions: u32,
    pub guest_cwrs: u16,
    pub retransmissions: u32,
    pub drops: u32,
    /// |cwnd - flight| / flight, one for each look at the flow within the window.
    #[serde(skip)]
    pub cwnd_errors: Vec<f64>,
    /// The windows of vcc and of the guest itself, beside each other, in shadow mode.
    #[serde(skip)]
    pub tracking: Tracking,
    /// In virtual time, in shadow mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Guessed>,
}

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

/// A shadow is compared with the guest all the time: a few times between acknowledgements.
const IN_THE_SHADOW: Duration = Duration::from_micros(200);
/// Counters are read for their last values only.
const NOW_AND_THEN: Duration = Duration::from_millis(100);

impl Ports {
    /// `flow_of` says which of the flows that a host sends is to be watched.
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
                let options = &translation.options;
                let port = match &pools {
                    Some(pools) if translation.is_pooled() => {
                        Port::attach_under(&pools.shared, host as u32, &device, options)
                    }
                    _ => Port::attach(&device, options),
                };
                port.map_err(|error| trouble(host, error))
            })?;
            ports.push(Watched { host, address: hosts.address(host), flow: flow_of(host), port });
            look_every = look_every.min(translation.look_every());
        }
        Ok(Self { ports, pools, look_every })
    }

    /// What the pools have given out until now.
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
                    look(watched, seen, sender, control)?;
                }
            }
            sleep(self.look_every);
        }
        Ok(seen.into_iter().flatten().collect())
    }
}

fn pools_of(translations: &[(HostId, &Translation)]) -> Result<Option<Pools>> {
    let part = |(host, translation): &(HostId, &'_ Translation)| {
        Some((*host, translation.part.clone()?, translation.options.treatment.underlay))
    };
    let parts: Vec<_> = translations.iter().filter_map(part).collect();
    if parts.is_empty() {
        return Ok(None);
    }
    let parts: Vec<_> =
        parts.iter().map(|(host, part, underlay)| (*host, part, underlay.name())).collect();
    let failed = |problem| Error::Attach { host: "the pools".into(), problem };
    Pools::create(&parts).map(Some).map_err(failed)
}

fn trouble(host: HostId, problem: impl Display) -> Error {
    Error::Attach { host: format!("host {}", host + 1), problem: problem.to_string() }
}

fn look(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn vcc(mode: VccMode, underlay: &str) -> Vcc {
        Vcc { mode, underlay: Some(underlay.into()), ..Vcc::default() }
    }

    fn gives_ecn(mode: VccMode, underlay: &str) -> bool {
        Translation::new(&vcc(mode, underlay), &BTreeMap::new()).unwrap().unwrap().gives_ecn()
    }

    #[test]
    fn the_engine_says_who_gets_ecn() {
        assert!(gives_ecn(VccMode::Enforce, "reno-ecn"));
        assert!(!gives_ecn(VccMode::Enforce, "reno"));
        assert!(!gives_ecn(VccMode::Enforce, "transparent"));
        assert!(!gives_ecn(VccMode::Shadow, "reno-ecn"));
    }

    #[test]
    fn what_vcc_does_not_have_is_refused_by_its_field() {
        assert!(Translation::new(&vcc(VccMode::Off, "none"), &BTreeMap::new()).unwrap().is_none());
        let (field, text) =
            Translation::new(&vcc(VccMode::Enforce, "none"), &BTreeMap::new()).unwrap_err();
        assert_eq!(field, "underlay");
        assert!(text.contains("'none'") && text.contains("reno-ecn"), "{text}");
    }
}
