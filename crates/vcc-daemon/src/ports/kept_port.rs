//! A port that the daemon keeps.

use vcc_engine::Mode;
use vcc_policy::{Affiliation, Policy, Tunnels};
use vcc_port::coexistence::Finding;
use vcc_port::{Port, Shortage};

use super::neighbours::Neighbours;
use super::visibility::Visibility;
use crate::Result;
use crate::emitting::Emitting;
use crate::journal::{self, About};

pub(crate) struct KeptPort {
    pub port: Port,
    pub index: u32,
    pub tenant: Option<String>,
    pub class: Option<String>,
    /// The guest that the policy names. Devices of one guest have one index.
    pub guest: Option<String>,
    /// Whether the port drained at the last check; `vcc detach` also makes a port drain.
    pub draining: bool,
    /// `vcc detach` makes it drain, until a reload.
    pub(super) drained_by_hand: bool,
    pub(super) emitting: Option<Emitting>,
    /// The reason why nothing is sent to the guest, as it was logged.
    pub(super) silent: Option<String>,
    /// The shortage found at the last check.
    pub(super) shortage: Option<Shortage>,
    pub(super) visibility: Visibility,
    pub(super) neighbours: Neighbours,
    /// The device was given a name that is not UTF-8, by which it cannot be opened.
    pub(super) is_misnamed: bool,
}

impl KeptPort {
    pub(super) fn new(port: Port, index: u32, affiliation: Affiliation<'_>) -> Self {
        Self {
            port,
            index,
            tenant: affiliation.tenant.map(str::to_owned),
            class: affiliation.class.map(str::to_owned),
            guest: None,
            draining: false,
            drained_by_hand: false,
            emitting: None,
            silent: None,
            shortage: None,
            visibility: Visibility::default(),
            neighbours: Neighbours::default(),
            is_misnamed: false,
        }
    }

    pub(super) fn set_affiliation(&mut self, affiliation: Affiliation<'_>) {
        self.tenant = affiliation.tenant.map(str::to_owned);
        self.class = affiliation.class.map(str::to_owned);
    }

    fn affiliation(&self) -> Affiliation<'_> {
        Affiliation { tenant: self.tenant.as_deref(), class: self.class.as_deref() }
    }

    /// Other programs at the device that interfere.
    pub(crate) fn harmful_neighbours(&self) -> &[Finding] {
        self.neighbours.harmful()
    }

    pub(super) fn set_draining(&mut self, drain: bool) {
        let device = self.port.device();
        let (mode, what) = match (drain, self.draining) {
            (true, false) => (Mode::Drain, "draining: the policy no longer names this port"),
            (false, true) => (Mode::Enforce, "no longer draining"),
            _ => return,
        };
        match self.port.set_mode(mode) {
            Ok(()) => {
                journal::info!(port = &*self, "{device}: {what}");
                self.draining = drain;
            }
            Err(error) => journal::warning!(port = &*self, "{device}: {error}"),
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.draining && self.port.drain().is_ok_and(|dependent| dependent == 0)
    }

    pub(super) fn check_table_size(&self, max_flows: u32) {
        let Ok(has) = self.port.max_flows() else { return };
        if has != max_flows {
            journal::notice!(
                port = self,
                "{device}: still tracks {has} connections, not {max_flows}: to change that, \
                 run `vcc detach {device}`, then reload",
                device = self.port.device()
            );
        }
    }

    pub(super) fn set_tunnels(&self, tunnels: Tunnels) {
        if let Err(error) = self.port.set_inside(tunnels) {
            journal::warning!(port = self, "{}: {error}", self.port.device());
        }
    }

    pub(super) fn check_usage(&mut self) {
        let before = self.shortage;
        // A port that cannot be read is reported elsewhere.
        if let (Ok(usage), Ok(max_flows)) = (self.port.usage(), self.port.max_flows()) {
            self.shortage = usage.shortage(max_flows, before);
            self.visibility.note_flows(usage.flows);
        }
        if self.shortage == before {
            return;
        }
        let device = self.port.device();
        match self.shortage {
            Some(shortage) => {
                journal::warning!(port = &*self, "{}", describe_shortage(device, shortage))
            }
            None => {
                journal::notice!(port = &*self, "{device}: the flow table has free entries again")
            }
        }
    }

    /// Compares the packets that passed the device with those that vcc saw.
    pub(super) fn check_visibility(&mut self, packets: u64) {
        // A port that cannot be read is reported elsewhere.
        let Ok(counters) = self.port.counters() else { return };
        let before = self.visibility.unseen().is_some();
        self.visibility.compare(packets, counters.iter().map(|(_, count)| count).sum());
        let device = self.port.device();
        match (before, self.visibility.unseen()) {
            (false, Some(packets)) => {
                journal::warning!(port = &*self, "{}", describe_blindness(device, packets))
            }
            (true, None) => journal::notice!(port = &*self, "{device}: sees its packets again"),
            _ => {}
        }
    }

    /// Starts or stops sending to the guest, as its rules require. `is_sent`: another of the
    /// guest's devices sends to it already.
    pub(super) fn set_emitting(&mut self, policy: &Policy, is_sent: bool) {
        if is_sent {
            self.emitting = None;
            self.silent = None;
            return;
        }
        let wanted = policy.emits_for(self.affiliation()) && !self.draining;
        let emitted = self.emit(wanted);
        if let Some(why) = journal::new_failure(&mut self.silent, emitted) {
            let device = self.port.device();
            journal::warning!(port = &*self, "{device}: cannot send to the guest: {why}");
        }
    }

    fn emit(&mut self, wanted: bool) -> Result<()> {
        if self.port.emits()? != wanted {
            self.port.set_emits(wanted)?;
        }
        if !wanted {
            self.emitting = None;
        } else if self.emitting.is_none() {
            self.emitting = Some(Emitting::begin(&self.port)?);
        }
        Ok(())
    }
}

impl<'a> From<&'a KeptPort> for About<'a> {
    fn from(held: &'a KeptPort) -> Self {
        Self { device: held.port.device(), tenant: held.tenant.as_deref() }
    }
}

pub(super) fn describe_shortage(device: &str, shortage: Shortage) -> String {
    match shortage {
        Shortage::Connections => format!(
            "{device}: the flow table is nearly full; when it is full, new connections pass untranslated, \
             or are dropped if their rule has on_full = \"drop\" (raise max_flows, then \
             `vcc detach {device} --wait` and `vcc policy apply`)"
        ),
        Shortage::Handshakes => format!(
            "{device}: a SYN flood or a scan fills the flow table's share for handshakes; the oldest \
             give way to newer ones (`vcc flows {device}` shows whose they are)"
        ),
    }
}

pub(crate) fn describe_blindness(device: &str, packets: u64) -> String {
    format!(
        "{device}: {packets} packets passed the device, and vcc saw none of them \
         (`vcc doctor --device {device}` names the program in the way)"
    )
}
