//! Segments that vcc sends to the guest. The datapath decides, but BPF programs run only when a
//! segment passes, so user space builds and sends them.

mod socket;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{FlowKey, FlowState, sys};
use vcc_net::empty_segment::EmptySegment;

use crate::device::Device;
use crate::flows;
use crate::lock::Lock;
use crate::maps::{Maps, keep};
use crate::plain::{from_bytes, to_bytes};
use crate::ring::{Ring, now_us};
use crate::{Error, Result, pins};
pub use socket::{Socket, Way};

/// A multiple of all sizes of pages.
const RING_BYTES: u32 = 64 << 10;
/// By then, a guest that counts duplicate ACKs has retransmitted.
const SECOND_LOOK: Duration = Duration::from_millis(10);

/// Other ports of the same thread wait for no more of one guest's events than this.
const AT_ONCE: usize = 64;

/// Sends to the guest of one port what the engine decides, until it is dropped.
pub struct Emitter {
    ring: Ring,
    flows: flows::Table,
    neighbours: MapHandle,
    socket: Socket,
    /// The device that the socket is at; the guest may have others.
    device: Device,
    /// The port's index, by which other devices of the guest are found; None if it has no others.
    index: Option<u32>,
    /// Connections to which duplicate ACKs were sent a moment ago.
    prodded: VecDeque<Prodded>,
    emitted: Emitted,
    /// Keeps other processes from the same; None if the port is not pinned.
    _role: Option<Lock>,
}

/// Counts what was sent, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emitted {
    pub duplicate_acks: u64,
    pub window_updates: u64,
    /// Not sent, because the connection had gone on meanwhile.
    pub outdated: u64,
    /// Not sent, because no SYN had shown the MAC addresses, or the device refused the frame.
    pub unsent: u64,
}

struct Prodded {
    event: sys::vcc_event,
    at_us: u64,
}

impl Emitter {
    pub(crate) fn start(
        device: &Device,
        maps: &Maps,
        port: u32,
        role: Option<Lock>,
    ) -> Result<Self> {
        Ok(Self {
            socket: Socket::open(device, Way::Direct)?,
            device: device.clone(),
            index: role.is_some().then_some(port),
            ring: Ring::open(&maps.events, port, RING_BYTES)?,
            flows: flows::Table::from_maps(maps)?,
            neighbours: keep(&maps.neighbours)?,
            prodded: VecDeque::new(),
            emitted: Emitted::default(),
            _role: role,
        })
    }

    /// Waits up to `timeout` for events of the engine, and carries them out.
    pub fn serve(&mut self, timeout: Duration) -> Result<()> {
        let timeout = self.next_look().map_or(timeout, |look| timeout.min(look));
        if let Some(event) = self.ring.next(timeout)? {
            self.carry_out(event)?;
        }
        self.serve_some().map(drop)
    }

    /// Carries out some of the events that have come, without waiting. Returns whether there may be
    /// more.
    pub fn serve_some(&mut self) -> Result<bool> {
        for _ in 0..AT_ONCE {
            let Some(event) = self.ring.next(Duration::ZERO)? else {
                self.look_again()?;
                return Ok(false);
            };
            self.carry_out(event)?;
        }
        self.look_again()?;
        Ok(true)
    }

    /// Readable when an event has come. [`Self::serve_some`] is due then, and after
    /// [`Self::next_look`].
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.ring.poll_fd()
    }

    pub fn next_look(&self) -> Option<Duration> {
        let at_us = self.prodded.front()?.at_us + SECOND_LOOK.as_micros() as u64;
        Some(Duration::from_micros(at_us.saturating_sub(now_us())))
    }

    /// Totals since the start.
    pub fn emitted(&self) -> Emitted {
        self.emitted
    }

    fn carry_out(&mut self, event: sys::vcc_event) -> Result<()> {
        let Some(flow) = self.still_due(&event)? else {
            self.emitted.outdated += 1;
            return Ok(());
        };
        if event.kind == sys::EVENT_WINDOW {
            self.emitted.window_updates += self.send(&event.key, &flow, 1)?;
        } else {
            self.emitted.duplicate_acks += self.send(&event.key, &flow, event.dupacks)?;
            self.prodded.push_back(Prodded { event, at_us: now_us() });
        }
        Ok(())
    }

    /// The guest may have taken the first duplicate for a window update, as Linux does if the peer
    /// has sent data since its last ACK (tcp_may_update_window()). Then one more is needed.
    fn look_again(&mut self) -> Result<()> {
        let until_us = now_us().saturating_sub(SECOND_LOOK.as_micros() as u64);
        for _ in 0..AT_ONCE {
            if self.prodded.front().is_none_or(|prodded| prodded.at_us > until_us) {
                break;
            }
            let Some(Prodded { event, .. }) = self.prodded.pop_front() else { break };
            if let Some(flow) = self.still_due(&event)? {
                self.emitted.duplicate_acks += self.send(&event.key, &flow, 1)?;
            }
        }
        Ok(())
    }

    /// The current flow, if the event still applies to it.
    fn still_due(&self, event: &sys::vcc_event) -> Result<Option<sys::vcc_flow>> {
        let flow = self.flows.look_up(&event.key)?;
        Ok(flow.filter(|flow| is_still_due(event, flow)))
    }

    /// Returns how many of `count` were sent.
    fn send(&mut self, key: &sys::vcc_key, flow: &sys::vcc_flow, count: u32) -> Result<u64> {
        let Some(sys::vcc_neighbour_at { neighbour, ifindex }) = self.neighbour(key)? else {
            self.emitted.unsent += u64::from(count);
            return Ok(0);
        };
        let frame = ack_to_guest(key, flow, &neighbour);
        let sends = ifindex == self.device.ifindex || self.is_of_guest(ifindex)?;
        let send = |_: &u32| sends && self.socket.send_by(ifindex, &frame).is_ok();
        let sent = (0..count).filter(send).count() as u64;
        self.emitted.unsent += u64::from(count) - sent;
        Ok(sent)
    }

    /// Whether the guest has that device here. One that has moved to another namespace may have left its
    /// ifindex to another guest's.
    fn is_of_guest(&self, ifindex: u32) -> Result<bool> {
        let device = Device { ifindex, ..self.device.clone() };
        let Some(index) = self.index else { return Ok(false) };
        Ok(pins::find(&device)?.is_some_and(|pin| pin.index == Some(index)))
    }

    fn neighbour(&self, key: &sys::vcc_key) -> Result<Option<sys::vcc_neighbour_at>> {
        const DOING: &str = "look up a guest's MAC address";
        let of =
            sys::vcc_neighbour_key { guest_addr: key.guest_addr, vlan: key.vlan, port: key.port };
        let found = self.neighbours.lookup(to_bytes(&of), MapFlags::ANY);
        let found = found.map_err(|e| Error::system(DOING, e))?;
        found.map(|bytes| from_bytes(&bytes).ok_or_else(|| Error::layout(DOING))).transpose()
    }
}

/// The frame of [`FlowState::repeated_ack`], as the peer might have sent it.
fn ack_to_guest(
    key: &sys::vcc_key,
    flow: &sys::vcc_flow,
    neighbour: &sys::vcc_neighbour,
) -> Vec<u8> {
    let ack = FlowState(*flow).repeated_ack();
    let segment = EmptySegment {
        addresses: [key.peer_addr, key.guest_addr],
        ports: [key.peer_port, key.guest_port].map(u16::from_be),
        seq: ack.seq,
        ack: ack.ack,
        flags: ack.flags,
        window: ack.window,
        timestamps: None,
    };
    let macs = [neighbour.next_hop_mac, neighbour.guest_mac];
    segment.frame(macs, FlowKey::from_raw(*key).vlan())
}

fn is_still_due(event: &sys::vcc_event, now: &sys::vcc_flow) -> bool {
    let then = &event.flow;
    let same = now.snd_una == then.snd_una && u32::from(now.stage) == sys::STAGE_ESTABLISHED;
    same && match event.kind {
        sys::EVENT_DUPACKS => {
            now.flags & sys::FLOW_PRODDED != 0
                && now.dupacks == then.dupacks
                && now.retransmissions == then.retransmissions
        }
        sys::EVENT_WINDOW => now.window_shown == then.window_shown,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksums come from another implementation of RFC 1071.
    #[test]
    fn an_ack_to_a_guest_in_a_vlan_comes_from_its_peer() {
        let [guest, peer] = ["192.0.2.1:40000", "192.0.2.2:80"].map(|end| end.parse().unwrap());
        let flow = sys::vcc_flow {
            rcv_nxt: 0x0102_0304,
            snd_una: 0xa0a1_a2a3,
            window_shown: 0x1234,
            ..Default::default()
        };
        let neighbour =
            sys::vcc_neighbour { guest_mac: [2, 0, 0, 0, 0, 1], next_hop_mac: [2, 0, 0, 0, 0, 2] };
        let key = FlowKey::new(guest, peer, Some(5));
        let expected = [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0][..],
            &[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0xb6, 0xcc, 192, 0, 2, 2, 192, 0, 2, 1],
            &[0, 80, 0x9c, 0x40, 1, 2, 3, 4, 0xa0, 0xa1, 0xa2, 0xa3, 0x50, 0x10, 0x12, 0x34],
            &[0x35, 0xc1, 0, 0],
        ];
        assert_eq!(ack_to_guest(key.as_raw(), &flow, &neighbour), expected.concat());
    }

    #[test]
    fn events_that_no_longer_apply_are_dropped() {
        let flow = sys::vcc_flow {
            stage: sys::STAGE_ESTABLISHED as u8,
            flags: sys::FLOW_PRODDED,
            snd_una: 7,
            window_shown: 100,
            ..Default::default()
        };
        let event = |kind| sys::vcc_event { kind, flow, ..Default::default() };
        let (dupacks, window) = (event(sys::EVENT_DUPACKS), event(sys::EVENT_WINDOW));
        let due = |now: sys::vcc_flow| [is_still_due(&dupacks, &now), is_still_due(&window, &now)];
        assert_eq!(due(flow), [true, true]);
        assert_eq!(due(sys::vcc_flow { snd_una: 8, ..flow }), [false, false]);
        assert_eq!(due(sys::vcc_flow { stage: sys::STAGE_CLOSED as u8, ..flow }), [false, false]);
        assert_eq!(due(sys::vcc_flow { flags: 0, ..flow }), [false, true]);
        assert_eq!(due(sys::vcc_flow { dupacks: 1, ..flow }), [false, true]);
        assert_eq!(due(sys::vcc_flow { retransmissions: 1, ..flow }), [false, true]);
        assert_eq!(due(sys::vcc_flow { window_shown: 101, ..flow }), [true, false]);
        assert!(!is_still_due(&event(sys::EVENT_ACK), &flow));
    }
}
