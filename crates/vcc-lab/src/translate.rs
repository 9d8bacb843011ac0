//! vcc on the ports of an experiment: the only file of the lab that knows `vcc-port`.

use crate::emulator::Control;
use crate::error::{Doing, Error, Result};
use crate::hosts::Hosts;
use crate::run::Guest;
use serde::Serialize;
use std::net::IpAddr;
use std::thread::{Builder, Scope, ScopedJoinHandle, sleep};
use std::time::Duration;
use vcc_engine::{FlowState, Mode, Params, Segment, sys};
use vcc_port::{AttachOptions, Port};

/// How vcc treats one guest.
#[derive(Debug, Clone)]
pub struct Translation {
    options: AttachOptions,
}

/// How an experiment file describes it, by the names that vcc itself uses.
#[derive(Debug, Clone, Copy)]
pub struct TranslationNames<'a> {
    pub mode: &'a str,
    pub underlay: &'a str,
    pub guest_ecn: &'a str,
    pub prr: bool,
    pub pace_push: bool,
}

impl Translation {
    /// `Err` names the field and what it may be.
    pub fn parse(names: &TranslationNames) -> std::result::Result<Self, (&'static str, String)> {
        let wrong = |field| move |error: vcc_engine::ParseNameError| (field, error.to_string());
        let options = AttachOptions {
            mode: names
                .mode
                .parse()
                .map_err(|error| ("vcc", format!("{error}, or off for none")))?,
            underlay: names.underlay.parse().map_err(wrong("underlay"))?,
            guest_ecn: names.guest_ecn.parse().map_err(wrong("guest_ecn"))?,
            prr: names.prr,
            pace_push: names.pace_push,
            ..AttachOptions::default()
        };
        Ok(Self { options })
    }

    /// Whether it makes a guest without ECN an ECN one to the fabric. The engine is asked: does
    /// a plain SYN leave it as an ECN-setup SYN (RFC 3168, 6.1.1)?
    pub fn gives_ecn(&self) -> bool {
        let mut params = Params::default();
        params.0.underlay = self.options.underlay.number();
        params.0.mode = self.options.mode.number();
        let syn = Segment { now_us: 1, flags: sys::TCP_SYN as u16, ..Segment::default() };
        let action = FlowState::default().from_guest(&params, &syn);
        let ecn_setup = (sys::TCP_ECE | sys::TCP_CWR) as u16;
        action.flags & ecn_setup == ecn_setup
    }

    fn look_every(&self) -> Duration {
        if self.options.mode == Mode::Shadow { EVERY_WINDOW } else { NOW_AND_THEN }
    }
}

/// What a port knows of its guest's flow.
#[derive(Debug, Clone, Serialize)]
pub struct Observation {
    /// Number of the guest.
    pub guest: usize,
    pub marks: u32,
    pub reductions: u32,
    pub guest_cwrs: u32,
    pub retransmissions: u32,
    pub drops: u32,
    /// |cwnd - flight| / flight, one for each look at the flow within the window.
    #[serde(skip)]
    pub cwnd_errors: Vec<f64>,
}

/// The ports that vcc is attached to; dropping them detaches it.
pub struct Ports {
    ports: Vec<(usize, IpAddr, Port)>,
    look_every: Duration,
}

/// A shadow is compared with the guest all the time.
const EVERY_WINDOW: Duration = Duration::from_millis(2);
/// Counters are read for their last values only.
const NOW_AND_THEN: Duration = Duration::from_millis(100);

impl Ports {
    pub fn attach(hosts: &Hosts, guests: &[Guest]) -> Result<Self> {
        let mut ports = Vec::new();
        let mut look_every = NOW_AND_THEN;
        for (number, guest) in guests.iter().enumerate() {
            let Some(translation) = &guest.translation else { continue };
            let (namespace, device) = hosts.port(number).ok_or_else(|| Error::Attach {
                host: format!("guest {}", number + 1),
                problem: "it has no port: use hosts = \"veth\"".into(),
            })?;
            let port = namespace.inside(|| {
                Port::attach(&device, &translation.options).map_err(|error| Error::Attach {
                    host: format!("guest {}", number + 1),
                    problem: error.to_string(),
                })
            })?;
            ports.push((number, hosts.address(number), port));
            look_every = look_every.min(translation.look_every());
        }
        Ok(Self { ports, look_every })
    }

    /// Watches the flows, without real-time priority, until the run ends.
    pub fn observe<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        control: &'scope Control,
    ) -> Result<ScopedJoinHandle<'scope, Result<Vec<Observation>>>> {
        Builder::new()
            .name("observer".into())
            .spawn_scoped(scope, || self.watch(control))
            .doing(|| "start the observer's thread".into())
    }

    fn watch(&self, control: &Control) -> Result<Vec<Observation>> {
        let mut seen: Vec<Option<Observation>> = vec![None; self.ports.len()];
        while !control.is_stopped() && !self.ports.is_empty() {
            let in_window = control.window().contains(crate::system::now_ns());
            for ((number, address, port), seen) in self.ports.iter().zip(&mut seen) {
                let before = seen.take().map(|seen| seen.cwnd_errors).unwrap_or_default();
                *seen = look(*number, *address, port, before, in_window)?;
            }
            sleep(self.look_every);
        }
        Ok(seen.into_iter().flatten().collect())
    }
}

fn look(
    guest: usize,
    address: IpAddr,
    port: &Port,
    mut cwnd_errors: Vec<f64>,
    in_window: bool,
) -> Result<Option<Observation>> {
    let flows = port.flows().map_err(|error| Error::Attach {
        host: format!("guest {}", guest + 1),
        problem: format!("its flows cannot be read: {error}"),
    })?;
    let Some(flow) = flows.iter().find(|flow| flow.guest.ip() == address) else {
        return Ok(None);
    };
    let state = &flow.state;
    let flight_bytes = f64::from(state.flight_bytes());
    if in_window && flight_bytes > 0.0 {
        let cwnd_bytes = f64::from(state.cc.cwnd_segs) * f64::from(state.mss_bytes);
        cwnd_errors.push((cwnd_bytes - flight_bytes).abs() / flight_bytes);
    }
    Ok(Some(Observation {
        guest,
        marks: state.marks,
        reductions: state.reductions,
        guest_cwrs: state.guest_cwrs,
        retransmissions: state.retransmissions,
        drops: state.drops,
        cwnd_errors,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation(mode: &str, underlay: &str) -> Translation {
        let guest_ecn = "leave";
        let names = TranslationNames { mode, underlay, guest_ecn, prr: true, pace_push: true };
        Translation::parse(&names).unwrap()
    }

    #[test]
    fn the_engine_says_who_gets_ecn() {
        assert!(translation("enforce", "reno-ecn").gives_ecn());
        assert!(!translation("enforce", "reno").gives_ecn());
        assert!(!translation("enforce", "transparent").gives_ecn());
        assert!(!translation("shadow", "reno-ecn").gives_ecn());
    }
}
