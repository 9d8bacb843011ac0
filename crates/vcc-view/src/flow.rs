//! One connection at one port, with values derived from its state.

use std::sync::Arc;

use vcc_domain::BufferShare;
use vcc_engine::{FlowState, Limit, Mode, Params, Underlay, sys};
use vcc_port::{Flow, FlowId};

use crate::cpu::GuestCpu;
use crate::names::FlowKey;
use crate::rates::Rates;
use crate::rule::AppliedRule;

/// The port of a flow.
#[derive(Clone)]
pub struct Place {
    /// Its index among the ports that were read.
    pub index: usize,
    /// From [`crate::keys`].
    pub key: Arc<str>,
    /// The name of the device.
    pub port: Arc<str>,
    pub tenant: Option<Arc<str>>,
}

#[derive(Clone)]
pub struct FlowView {
    pub key: FlowKey,
    /// The index of its port among those that were read.
    pub port_index: usize,
    pub port: Arc<str>,
    pub tenant: Option<Arc<str>>,
    pub rule: Option<Arc<str>>,
    /// Whether the flow's rule is of the edition in force.
    pub is_current: bool,
    /// With the open wait for the guest.
    pub state: FlowState,
    pub limit: Limit,
    /// None if only another version of vcc has it.
    pub mode: Option<Mode>,
    /// Its treatment has `act = "hold"`.
    pub holds: bool,
    /// Of the buffer of its port; None at a port in the kernel, which has none.
    pub share: Option<BufferShare>,
    /// Acknowledged by its port in the name of the peer or the guest; None likewise.
    pub promised_bytes: Option<u64>,
    /// The guest's; None unless it was watched.
    pub cpu: Option<GuestCpu>,
    /// Since the read before; None at the first.
    pub rates: Option<Rates>,
}

impl FlowView {
    /// `params` are the port's; a rule has its own. `share`: as in the field.
    pub fn new(
        place: &Place,
        flow: &Flow,
        rule: Option<AppliedRule>,
        params: &Params,
        share: Option<BufferShare>,
        now_us: u64,
    ) -> Self {
        let leaving_bytes = share.filter(|share| share.share_bytes != 0).map(|it| it.leaving_bytes);
        let params = rule.as_ref().map_or(params, |rule| rule.params);
        Self {
            key: (place.key.clone(), flow.id()),
            port_index: place.index,
            port: place.port.clone(),
            tenant: place.tenant.clone(),
            limit: flow.state.limited_by(params, leaving_bytes, now_us),
            mode: Mode::from_number(params.0.mode),
            holds: u32::from(params.0.act) == sys::ACT_HOLD,
            is_current: rule.as_ref().is_some_and(|rule| rule.is_current),
            rule: rule.map(|rule| rule.name),
            state: flow.state.with_open_wait(params, now_us),
            share,
            promised_bytes: None,
            cpu: None,
            rates: None,
        }
    }

    /// In shadow mode, vcc computes the underlay's window and shows the guest the peer's.
    pub fn is_shadow(&self) -> bool {
        self.mode == Some(Mode::Shadow)
    }

    /// The window that the underlay would show, in shadow mode.
    pub fn would_show_bytes(&self) -> Option<u64> {
        self.state.cwnd_bytes().filter(|_| self.is_shadow())
    }

    pub fn id(&self) -> &FlowId {
        &self.key.1
    }

    /// The name of the underlay; "unknown" if only another version of vcc defines it.
    pub fn underlay(&self) -> &'static str {
        Underlay::from_number(self.state.underlay).map_or("unknown", Underlay::name)
    }

    /// Its bytes in the buffer of its port.
    pub fn held_bytes(&self) -> Option<u64> {
        self.share.map(|share| share.held_bytes.into())
    }

    /// Why the guest may send no more than what may leave at once (vFlood, 3.2); None if it may.
    pub fn offline(&self) -> Option<&'static str> {
        match self.share?.state {
            sys::HOLD_NO_BUFFER => Some("no-buffer"),
            sys::HOLD_PACKET_LOSS => Some("packet-loss"),
            sys::HOLD_DRAINING => Some("draining"),
            _ => None,
        }
    }

    /// The peer's feedback on the guest's data.
    pub fn heard(&self) -> Option<sys::vcc_feedback> {
        self.state.has(sys::FLOW_FEEDBACK_HEARD).then_some(self.state.heard)
    }

    /// The feedback to the peer on its data.
    pub fn counted(&self) -> Option<sys::vcc_feedback> {
        self.state.has(sys::FLOW_FEEDBACK).then_some(self.state.counted)
    }
}
