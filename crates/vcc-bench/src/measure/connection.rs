//! The connections of the benchmark: their segments, and their handshakes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use vcc_engine::{FlowKey, sys};
use vcc_frames::wire::{
    ACK, AE, CWR, ECE, ETHERNET_BYTES, HELLO_ACCEPT, IPV4_BYTES, SYN, TCP_BYTES,
};
use vcc_frames::{Packet, options, payload};
use vcc_port::{Datapath, Error, Flow, Program, Result};

pub(super) const PAYLOAD_BYTES: u32 = 1448;
pub(super) const GUEST: SocketAddr = end(1, 40_000);
pub(super) const PEER: SocketAddr = end(2, 80);
/// Its SYN is never seen.
pub(super) const STRANGER: SocketAddr = end(3, 80);
/// This peer is under vcc too.
pub(super) const AGREED: SocketAddr = end(4, 80);
/// This one is not, and has AccECN.
pub(super) const ACCURATE: SocketAddr = end(5, 80);
/// Far enough from the wrap for the longest measurement.
pub(super) const GUEST_ISN: u32 = 1_000_000;
pub(super) const PEER_ISN: u32 = 2_000_000;
pub(super) const WINDOW: u16 = 512;
/// The offset of the PACK in an ACK with timestamps.
pub(super) const PACK_AT: u32 = (ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES + 12) as u32;

pub(super) const fn end(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, host)), port)
}

/// An ACK with timestamps, as Linux sends it.
pub(super) fn ack(from: SocketAddr, to: SocketAddr) -> Packet {
    Packet {
        ack: PEER_ISN + 1,
        window: WINDOW,
        options: options::join(&[options::nops(2), options::timestamps(1, 1)]),
        ..Packet::new(from, to)
    }
}

/// Behind its timestamps, the ACK has a PACK.
pub(super) fn ack_with_pack(from: SocketAddr, to: SocketAddr) -> Packet {
    let ack = ack(from, to);
    let options = [&ack.options[..], &options::pack(1, 0)].concat();
    Packet { options, ..ack }
}

/// An ACK of a peer with AccECN that no mark has met: its counter's first value (RFC 9768, 3.2.1).
pub(super) fn accurate_ack() -> Packet {
    Packet { flags: ACK | AE | ECE, ..ack(ACCURATE, GUEST) }
}

pub(super) fn data(to: SocketAddr) -> Packet {
    Packet { payload: payload(PAYLOAD_BYTES as usize), ..ack(GUEST, to) }
}

/// A SYN with the options that Linux offers.
pub(super) fn syn(from: SocketAddr, to: SocketAddr) -> Packet {
    let offers = [
        options::mss(1460),
        options::sack_permitted(),
        options::timestamps(1, 0),
        options::nops(1),
        options::wscale(7),
    ];
    Packet { flags: SYN, ack: 0, options: offers.concat(), ..ack(from, to) }
}

/// The key of a flow, as the datapath has it.
pub(super) fn key(guest: SocketAddr, peer: SocketAddr) -> sys::vcc_key {
    *FlowKey::new(guest, peer, None).as_raw()
}

/// The handshake of a guest without ECN and a peer with it: the guest's SYN, the peer's SYN-ACK, and
/// the guest's ACK.
pub(super) fn handshake(peer: SocketAddr) -> [Packet; 3] {
    // By AccECN: the SYN arrived as Not-ECT (RFC 9768, table 2).
    let flags = SYN | ACK | if peer == ACCURATE { CWR } else { ECE };
    [
        Packet { seq: GUEST_ISN, ..syn(GUEST, peer) },
        Packet { seq: PEER_ISN, ack: GUEST_ISN + 1, flags, ..syn(peer, GUEST) },
        Packet { seq: GUEST_ISN + 1, ..ack(GUEST, peer) },
    ]
}

/// The handshake through both programs.
pub(super) fn establish(datapath: &Datapath, peer: SocketAddr) -> Result<()> {
    let [opening, mut answer, last] = handshake(peer);
    if peer == AGREED {
        answer.options.extend(options::hello(HELLO_ACCEPT));
    }
    datapath.run(Program::FromGuest, &opening.frame(), 0)?;
    datapath.run(Program::ToGuest, &answer.frame(), 0)?;
    datapath.run(Program::FromGuest, &last.frame(), 0)?;

    let flows = datapath.flows()?;
    let is_it = |flow: &&Flow| flow.peer == peer;
    let expected = sys::FLOW_ECN_FABRIC | if peer == AGREED { sys::FLOW_FEEDBACK } else { 0 };
    match flows.iter().find(is_it).map(|flow| flow.state) {
        Some(state)
            if u32::from(state.stage) == sys::STAGE_ESTABLISHED
                && state.flags & expected == expected
                && (state.accecn != 0) == (peer == ACCURATE) =>
        {
            Ok(())
        }
        _ => Err(Error::System {
            doing: "measure the datapath".into(),
            why: "the handshake did not establish the flow".into(),
        }),
    }
}
