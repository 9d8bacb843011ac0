//! Regular checks of ports, for changes that no event announces.

use std::time::{Duration, Instant};

use vcc_policy::Policy;
use vcc_port::coexistence;
use vcc_port::links::Link;

use super::Ports;
use super::kept_port::KeptPort;
use super::unattached::{Retry, Unattached, Why};
use crate::journal::{self, About};

/// How often. All devices of the namespace are listed for it.
const COMPARE: Duration = Duration::from_secs(5);

impl Ports {
    /// Checks everything that has no event.
    pub(crate) fn check_regularly(&mut self, policy: &Policy) {
        self.churn.expire();
        self.leave_to_domains();
        self.catch_up(policy);
        self.retry_due(policy);
        self.compare_packets();
        self.look_at_neighbours();
    }

    /// Finds ports whose packets another program takes before vcc sees them.
    fn compare_packets(&mut self) {
        if self.compared.is_some_and(|at| at.elapsed() < COMPARE) {
            return;
        }
        self.compared = Some(Instant::now());
        let compared = coexistence::packets().map(|packets| {
            for (ifindex, held) in &mut self.held {
                if let Some(packets) = packets.get(ifindex) {
                    held.check_visibility(*packets);
                }
            }
        });
        let what = "cannot check whether ports see their packets";
        journal::failure(&mut self.cannot_compare, what, compared);
    }

    /// Releases devices that processes of `vcc domain` have begun to serve.
    fn leave_to_domains(&mut self) {
        let taps = vcc_view::taps();
        let is_served = |held: &KeptPort| {
            let device = held.port.device();
            taps.iter().any(|tap| tap == device) && vcc_view::serves_tap(device)
        };
        let served = self.held.iter().filter(|(_, held)| is_served(held));
        let served: Vec<u32> = served.map(|(index, _)| *index).collect();
        for index in served {
            let Some(mut held) = self.held.remove(&index) else { continue };
            let name = held.port.device().to_owned();
            held.emitting = None;
            if let Err(error) = held.port.detach() {
                journal::warning!(
                    port = &name,
                    "{name} is served by `vcc domain`, but stays a port as well: {error}"
                );
            }
            self.leave_served(&Link { index, name, is_exact: true });
        }
    }

    /// Finds ports that have drained, were detached by another process, or whose device is gone.
    pub(crate) fn catch_up(&mut self, policy: &Policy) {
        let mut off = Vec::new();
        let mut emits_again = false;
        for (ifindex, held) in &mut self.held {
            held.check_usage();
            let drains = held.port.drains().unwrap_or(held.draining);
            held.drained_by_hand = drains && (held.drained_by_hand || !held.draining);
            held.draining = drains;
            if !held.port.is_attached().unwrap_or(true) || held.is_drained() {
                off.push(*ifindex);
            } else if held.emitting.as_ref().is_some_and(|emitting| !emitting.is_running())
                || held.silent.is_some()
            {
                held.emitting = None;
                emits_again = true;
            }
        }
        // The sending device may be gone while another one of its guest is here.
        if emits_again || self.has_silent_guest() {
            self.emit(policy);
        }
        // The port of a device that is just gone counts as detached too; its event follows.
        for ifindex in off {
            if self.held.get(&ifindex).is_some_and(|held| !held.port.has_device()) {
                self.device_gone(ifindex);
            } else if let Some(held) = self.held.remove(&ifindex) {
                let wanted = policy.port_of(held.port.device()).is_some();
                self.release(held, wanted);
            }
        }
        for held in std::mem::take(&mut self.elsewhere) {
            if !held.port.is_attached().unwrap_or(true) || held.is_drained() {
                self.release(held, false);
            } else {
                self.elsewhere.push(held);
            }
        }
    }

    fn retry_due(&mut self, policy: &Policy) {
        let due = |left: &Unattached| left.again.is_some_and(Retry::is_due);
        let again: Vec<Link> =
            self.left.values().filter(|left| due(left)).map(|left| left.link.clone()).collect();
        for link in again {
            self.device_changed(&link, policy);
        }
    }

    /// A port has drained, or was detached by another process, though the policy may want it.
    fn release(&mut self, mut held: KeptPort, wanted: bool) {
        held.emitting = None;
        let (device, index) = (held.port.device().to_owned(), held.port.ifindex());
        let off = held.port.is_attached().is_ok_and(|attached| !attached);
        let about = About { device: &device, tenant: held.tenant.as_deref() };
        match held.port.detach() {
            // The process that detached it removed the pins, unless the device vanished unnoticed.
            _ if off => {}
            Ok(_) => journal::info!(port = about, "{device}: drained and detached"),
            Err(error) => {
                journal::warning!(port = about, "{device}: drained, but not detached: {error}")
            }
        }
        if wanted {
            let reason = "detached by hand; a reload attaches it again".to_owned();
            journal::notice!(port = about, "{device}: {reason}");
            let link = Link { index, name: device, is_exact: true };
            self.left.insert(index, Unattached { link, reason, why: Why::Problem, again: None });
        }
    }
}
