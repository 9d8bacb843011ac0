//! Builds a pure ACK as the peer might have sent it.

use vcc_engine::{FlowKey, FlowState, sys};

use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame};

/// The frame of [`FlowState::repeated_ack`].
pub(crate) fn ack_to_guest(
    key: &FlowKey,
    flow: &FlowState,
    neighbour: &sys::vcc_neighbour,
) -> Frame {
    let repeated = flow.repeated_ack();
    let ack = Bare {
        direction: Direction::ToGuest,
        seq: repeated.seq,
        ack: repeated.ack,
        flags: repeated.flags.into(),
        window: repeated.window,
        timestamps: None,
    };
    ack.frame(key, neighbour)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(guest: &str, peer: &str, vlan: Option<u16>) -> Vec<u8> {
        let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
        let flow = FlowState(sys::vcc_flow {
            rcv_nxt: 0x0102_0304,
            snd_una: 0xa0a1_a2a3,
            window_shown: 0x1234,
            ..Default::default()
        });
        let neighbour =
            sys::vcc_neighbour { guest_mac: [2, 0, 0, 0, 0, 1], next_hop_mac: [2, 0, 0, 0, 0, 2] };
        ack_to_guest(&FlowKey::new(guest, peer, vlan), &flow, &neighbour).bytes
    }

    /// The checksums come from another implementation of RFC 1071.
    #[test]
    fn over_ipv4_in_a_vlan() {
        let expected = [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0][..],
            &[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0xb6, 0xcc, 192, 0, 2, 2, 192, 0, 2, 1],
            &[0, 80, 0x9c, 0x40, 1, 2, 3, 4, 0xa0, 0xa1, 0xa2, 0xa3, 0x50, 0x10, 0x12, 0x34],
            &[0x35, 0xc1, 0, 0],
        ];
        let frame = frame("192.0.2.1:40000", "192.0.2.2:80", Some(5));
        assert_eq!(frame, expected.concat());
    }

    #[test]
    fn over_ipv6() {
        let frame = frame("[2001:db8::1]:40000", "[2001:db8::2]:80", None);
        assert_eq!(frame[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
        let addresses = 0x2001_0db8_u128 << 96;
        assert_eq!(frame[22..38], (addresses + 2).to_be_bytes());
        assert_eq!(frame[38..54], (addresses + 1).to_be_bytes());
        let head = [0, 80, 0x9c, 0x40, 1, 2, 3, 4, 0xa0, 0xa1, 0xa2, 0xa3, 0x50, 0x10, 0x12, 0x34];
        assert_eq!(frame[54..70], head);
        assert_eq!(frame.len(), 74);
        // Addresses, protocol and length, and the segment without its checksum.
        let sum: u32 = 2 * (0x2001 + 0x0db8)
            + 3
            + (6 + 20)
            + (0x0050 + 0x9c40 + 0x0102 + 0x0304)
            + (0xa0a1 + 0xa2a3 + 0x5010 + 0x1234);
        let check = !((sum & 0xffff) + (sum >> 16)) as u16;
        assert_eq!(frame[70..], [(check >> 8) as u8, check as u8, 0, 0]);
    }
}
