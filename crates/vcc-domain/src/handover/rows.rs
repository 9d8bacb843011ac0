//! The lines of a state. What is a time of the host's clock, or measured of its path, is not among
//! them.
//!
//! Either version reads the other's: a field keeps its name and meaning, and one that is added has
//! `#[serde(default)]`, because states of versions before lack it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use vcc_engine::export::Row;
use vcc_engine::sys;

use super::FrameRow;
use crate::ledger::Promise;
use vcc_engine::FlowKey;

/// No line about a connection is longer, but for the names of its frames.
pub(crate) const ROW_MAX_BYTES: usize = 1700;

/// The fields of one of the engine's structures by their names. What is left out begins anew.
macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident of $raw:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Serialize, Deserialize)]
        pub(crate) struct $name { $($(#[$of_field])* pub $field: $kind,)* }

        impl $name {
            pub(crate) fn from_raw(raw: &sys::$raw) -> Self {
                $name { $($field: raw.$field,)* }
            }

            pub(crate) fn raw(&self) -> sys::$raw {
                sys::$raw { $($field: self.$field,)* ..Default::default() }
            }
        }
    };
}

mirror! {
    /// `engine/hold_buffer.h`.
    HoldRow of vcc_hold {
        grant_edge: u32,
        peer_edge: u32,
        state: u8,
        begun: u8,
        retains: u8,
        promises: u8,
        promised: u32,
        kept_from: u32,
        no_buffer: u32,
        packet_loss: u32,
    }
}

mirror! {
    /// `engine/snoop.h`.
    SnoopRow of vcc_snoop {
        ring_nxt: u32,
        guest_ack: u32,
        guest_edge: u32,
        peer_ack: u32,
        told_edge: u32,
        sacked_from: u32,
        sacked_end: u32,
        ts_recent: u32,
        syn_tsval: u32,
        irs_nxt: u32,
        fin_seq: u32,
        mss_bytes: u16,
        seg_bytes: u16,
        opening: u8,
        begun: u8,
        barred: u8,
        latched: u8,
        repeats: u8,
        fin: u8,
        #[serde(default)]
        stored_bytes: u32,
    }
}

/// The guest's address on the link, and that of its next hop.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Macs(pub [u8; 6], pub [u8; 6]);

impl Macs {
    pub(crate) fn from_neighbour(neighbour: &sys::vcc_neighbour) -> Self {
        Macs(neighbour.guest_mac, neighbour.next_hop_mac)
    }

    pub(crate) fn neighbour(self) -> sys::vcc_neighbour {
        sys::vcc_neighbour { guest_mac: self.0, next_hop_mac: self.1 }
    }
}

/// The guest's latest acknowledgement.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LatestRow {
    pub ack: u32,
    pub window: u16,
    pub macs: Macs,
    pub timestamps: Option<[u32; 2]>,
}

/// A segment that has left and is retained.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct SentRow {
    pub frame: FrameRow,
    pub sacked: bool,
}

/// Link and IP headers of the guest's frames.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LinkRow {
    pub bytes: Vec<u8>,
    pub ip_at: u8,
    pub tcp_at: u8,
}

/// The data that are promised to a peer, or may be.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SnoopedRow {
    pub snoop: SnoopRow,
    pub link: LinkRow,
    pub tsval: u32,
    pub copies: Vec<FrameRow>,
    #[serde(default)]
    pub stored_end: Option<u32>,
    #[serde(default)]
    pub accepted: Option<AcceptedRow>,
    /// The peer's FIN, which waits until the guest has all data before it, and its sequence number.
    #[serde(default)]
    pub fin: Option<(u32, FrameRow)>,
}

/// A connection that the port has accepted in the guest's name.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum AcceptedRow {
    /// What the guest's numbers lack of those that the peer knows.
    Joined { seq: u32, tsval: u32 },
    /// The peer's SYN and its ACK, and what the guest has to answer.
    Waits { syn: FrameRow, ack: Option<FrameRow>, flags: u16, options: u16, wscale: u8 },
}

/// A connection that continues elsewhere, with the port's state of it. Its frames are named in this
/// order: retained, held, copies, SYN, ACK, FIN.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Travelling {
    pub flow: Row,
    /// The addresses of the port's own segments.
    pub macs: Option<Macs>,
    pub latest: Option<LatestRow>,
    pub hold: Option<HoldRow>,
    pub sent: Vec<SentRow>,
    pub held: Vec<FrameRow>,
    pub peer_tsval: Option<u32>,
    pub is_ack_due: bool,
    pub snooped: Option<SnoopedRow>,
}

/// A connection that was ended because a promise could not be kept, and whose ends may not know.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct EndedRow {
    guest: SocketAddr,
    peer: SocketAddr,
    vlan: Option<u16>,
    macs: Macs,
    snd_una: u32,
    snd_nxt: u32,
    promised: u32,
    rcv_nxt: u32,
}

impl EndedRow {
    pub(crate) fn from_promise(promise: &Promise) -> Self {
        let Promise { key, guest_mac, next_hop_mac, snd_una, snd_nxt, promised, rcv_nxt } =
            *promise;
        let macs = Macs(guest_mac, next_hop_mac);
        let (guest, peer, vlan) = (key.guest(), key.peer(), key.vlan());
        EndedRow { guest, peer, vlan, macs, snd_una, snd_nxt, promised, rcv_nxt }
    }

    pub(crate) fn promise(&self) -> Promise {
        let EndedRow { guest, peer, vlan, macs, snd_una, snd_nxt, promised, rcv_nxt } = *self;
        let Macs(guest_mac, next_hop_mac) = macs;
        let key = FlowKey::new(guest, peer, vlan);
        Promise { key, guest_mac, next_hop_mac, snd_una, snd_nxt, promised, rcv_nxt }
    }
}

#[cfg(test)]
mod tests {
    use vcc_engine::export::Connection;
    use vcc_engine::{Field, FlowState, Underlay};

    use super::*;
    use crate::snoop::HEADERS_MAX_BYTES;

    #[test]
    fn the_longest_row_is_within_its_limit() {
        let longest = Underlay::built_in().max_by_key(|it| it.name().len()).expect("one");
        let mut state = FlowState::travelling(longest);
        for field in Field::ALL {
            let largest = [u32::MAX, u16::MAX.into(), u8::MAX.into()];
            assert!(largest.into_iter().any(|number| field.set(&mut state, number)));
        }
        let address = "[ffff:eeee:dddd:cccc:bbbb:aaaa:9999:8888]:65535";
        let [guest, peer] = [address; 2].map(|end| end.parse().expect("an address"));
        let connection = Connection { guest, peer, vlan: Some(4095), inside: false, state };
        let macs = Macs([255; 6], [255; 6]);
        let hold = sys::vcc_hold {
            grant_edge: u32::MAX,
            peer_edge: u32::MAX,
            state: u8::MAX,
            begun: u8::MAX,
            retains: u8::MAX,
            promises: u8::MAX,
            promised: u32::MAX,
            kept_from: u32::MAX,
            no_buffer: u32::MAX,
            packet_loss: u32::MAX,
            ..Default::default()
        };
        let snoop = sys::vcc_snoop {
            ring_nxt: u32::MAX,
            guest_ack: u32::MAX,
            guest_edge: u32::MAX,
            peer_ack: u32::MAX,
            told_edge: u32::MAX,
            sacked_from: u32::MAX,
            sacked_end: u32::MAX,
            ts_recent: u32::MAX,
            syn_tsval: u32::MAX,
            irs_nxt: u32::MAX,
            fin_seq: u32::MAX,
            mss_bytes: u16::MAX,
            seg_bytes: u16::MAX,
            opening: u8::MAX,
            begun: u8::MAX,
            barred: u8::MAX,
            latched: u8::MAX,
            repeats: u8::MAX,
            fin: u8::MAX,
            stored_bytes: u32::MAX,
            ..Default::default()
        };
        let row = Travelling {
            flow: Row::from_connection(&connection),
            macs: Some(macs),
            latest: Some(LatestRow {
                ack: u32::MAX,
                window: u16::MAX,
                macs,
                timestamps: Some([u32::MAX; 2]),
            }),
            hold: Some(HoldRow::from_raw(&hold)),
            sent: Vec::new(),
            held: Vec::new(),
            peer_tsval: Some(u32::MAX),
            is_ack_due: false,
            snooped: Some(SnoopedRow {
                snoop: SnoopRow::from_raw(&snoop),
                link: LinkRow { bytes: vec![255; HEADERS_MAX_BYTES], ip_at: 255, tcp_at: 255 },
                tsval: u32::MAX,
                copies: Vec::new(),
                stored_end: Some(u32::MAX),
                accepted: Some(AcceptedRow::Joined { seq: u32::MAX, tsval: u32::MAX }),
                fin: None,
            }),
        };
        let bytes = serde_json::to_vec(&row).expect("JSON").len() + 1;
        assert!(bytes <= ROW_MAX_BYTES, "{bytes}");
        assert!(bytes > ROW_MAX_BYTES / 2, "{bytes}: the limit is too high");
    }
}
