//! What describes a connection on any host: the fields of its state that [`FlowState::arrive`] needs.
//! All others belong to a host's clock or path.

use crate::{FlowState, Underlay, native, sys};

/// A field of a connection's state, by a name that does not depend on the state's layout.
pub struct Field {
    pub name: &'static str,
    /// Its place in the engine's struct: members of members with a dot.
    pub place: &'static str,
    read: fn(&sys::vcc_flow) -> u32,
    /// False if the number does not fit.
    write: fn(&mut sys::vcc_flow, u32) -> bool,
}

macro_rules! fields {
    ($($name:literal: $at:ident $(. $within:ident)?;)*) => {
        &[$(Field {
            name: $name,
            place: concat!(stringify!($at) $(, ".", stringify!($within))?),
            read: |flow| flow.$at$(.$within)?.into(),
            write: |flow, number| match number.try_into() {
                Ok(number) => {
                    flow.$at$(.$within)? = number;
                    true
                }
                Err(_) => false,
            },
        }),*]
    };
}

impl Field {
    /// Those that the first version has, which no description lacks. What later versions add is as in a
    /// connection that has just begun, where a description of an earlier one lacks it.
    pub fn needed() -> &'static [Self] {
        const OF_THE_FIRST_VERSION: usize = 31;
        &Self::ALL[..OF_THE_FIRST_VERSION]
    }

    /// Added to at the end, never renamed: files of other versions have the names.
    pub const ALL: &'static [Self] = fields! {
        "flags": flags;
        "snd_una": snd_una;
        "snd_nxt": snd_nxt;
        "right_edge": right_edge;
        "iss": iss;
        "rcv_nxt": rcv_nxt;
        "rcv_wup": rcv_wup;
        "rcv_edge": rcv_edge;
        "rcv_max": rcv_max;
        "settled": settled;
        "peer_sends": peer_sends;
        "mss_bytes": mss_bytes;
        "mss_max_bytes": mss_max_bytes;
        "rcv_mss_bytes": rcv_mss_bytes;
        "wscale_peer": wscale_peer;
        "wscale_shown": wscale_shown;
        "wscale_guest": wscale_guest;
        "window_shown": window_shown;
        "window_received": window_received;
        "cwnd_segs": cc.cwnd_segs;
        "ssthresh_segs": cc.ssthresh_segs;
        "ca_state": ca_state;
        "srtt_us8": srtt_us8;
        "rttvar_us4": rttvar_us4;
        "counted_ect0_bytes": counted.ect0_bytes;
        "counted_ce_bytes": counted.ce_bytes;
        "uncounted_bytes": uncounted_bytes;
        "accecn": accecn;
        "syn_ip_ecn": syn_ip_ecn;
        "ace_counted": ace_counted;
        "ack_segs64": ack_segs64;
    };

    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|field| field.name == name)
    }

    pub fn value_in(&self, state: &FlowState) -> u32 {
        (self.read)(&state.0)
    }

    /// False if no connection has that number.
    pub fn set(&self, state: &mut FlowState, number: u32) -> bool {
        (self.write)(&mut state.0, number)
    }
}

impl FlowState {
    /// Can the connection continue elsewhere? In a handshake or at its end, it has nothing to take
    /// along.
    pub fn can_travel(&self) -> bool {
        u32::from(self.stage) == sys::STAGE_ESTABLISHED
    }

    /// A guest's answer to its peer's SYN has passed, but not the ACK of it. Continues as if it had:
    /// what the guest was shown holds from the SYN on. None if there is no such answer.
    pub fn answered(mut self, now_us: u64) -> Option<Self> {
        // SAFETY: it points to a live value of the C type for the length of the call.
        let err = unsafe { native::answered(&mut self.0, now_us) };
        (err == 0).then_some(self)
    }

    /// What describes this connection, and no more.
    pub fn described(&self) -> Self {
        let mut described = Self::default();
        (described.0.stage, described.0.underlay) = (self.stage, self.underlay);
        for field in Field::ALL {
            field.set(&mut described, field.value_in(self));
        }
        described
    }

    /// A connection to describe by [`Field::set`]. `underlay`: the one that computed its window.
    pub fn travelling(underlay: Underlay) -> Self {
        let mut state = Self::default();
        state.0.stage = sys::STAGE_ESTABLISHED as u8;
        state.0.underlay = underlay.number();
        state
    }
}
