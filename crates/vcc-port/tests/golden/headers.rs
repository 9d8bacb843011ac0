//! Headers around the TCP header, which are parsed and must not change.

use vcc_frames::wire::*;
use vcc_frames::{Packet, checksum, payload};

use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::usual;

/// Runs `test` with an established flow of each family, with and without VLAN, that uses ECN in the
/// fabric.
fn with_flows(test: impl Fn(&mut Conversation)) {
    let mut run = DualRun::new(&usual());
    for (ipv6, vlan) in [(false, None), (true, None), (false, Some(9)), (true, Some(9))] {
        let shape = Shape { ipv6, vlan, opener: FromGuest };
        run.doing = format!("{shape:?}");
        let mut c = Conversation::new(&mut run, shape, 20_000);
        c.open();
        test(&mut c);
    }
    run.assert_all();
}

#[test]
fn traffic_class_and_flow_label_are_kept() {
    if !vcc_testing::can_attach() {
        return;
    }
    with_flows(|c| {
        for dscp in 0..64u8 {
            let label = |p: &mut Packet| {
                p.flow_label = 0xfffff ^ u32::from(dscp);
                p.payload = payload(100);
            };
            let out = c.send(FromGuest, |p| {
                label(p);
                p.traffic_class = dscp << 2;
            });
            assert_eq!(out.at.traffic_class(&out.frame), dscp << 2 | ECT_0);
            let out = c.send(ToGuest, |p| {
                label(p);
                p.traffic_class = dscp << 2 | CE;
            });
            assert_eq!(out.at.traffic_class(&out.frame), dscp << 2);
        }
    });
}

/// Ethernet pads short frames to 60 bytes. The padding is not payload.
#[test]
fn padding_is_kept_and_not_counted() {
    if !vcc_testing::can_attach() {
        return;
    }
    with_flows(|c| {
        let pad = |p: &mut Packet| {
            p.options.clear();
            p.padding = vec![0xa5; 60usize.saturating_sub(p.frame().len()).max(2)];
        };
        let snd_nxt = c.state().snd_nxt;
        let out = c.send(FromGuest, pad);
        assert!(out.frame.len() >= 60 && out.frame.ends_with(&[0xa5; 2]));
        assert_eq!(out.ecn(), 0, "an empty ACK is not ECN-capable");
        assert_eq!(c.state().snd_nxt, snd_nxt);
        let out = c.send(FromGuest, |p| {
            p.payload = payload(1);
            pad(p);
        });
        assert_eq!(out.ecn(), ECT_0);
        assert_eq!(c.state().snd_nxt, snd_nxt.wrapping_add(1));
        let out = c.send(ToGuest, pad);
        assert_ne!(out.window(), 502);
        assert!(out.frame.ends_with(&[0xa5; 2]));
    });
}

#[test]
fn ip_options_and_extension_headers_are_followed() {
    if !vcc_testing::can_attach() {
        return;
    }
    // PadN (RFC 8200, 4.2) pads each to a multiple of eight bytes.
    let short = vec![0, 1, 4, 0, 0, 0, 0];
    let long = [vec![2, 1, 20], vec![0; 20]].concat();
    let chains = [
        vec![(PROTOCOL_HOP_BY_HOP, short.clone())],
        vec![(PROTOCOL_DESTINATION, long.clone())],
        vec![(PROTOCOL_HOP_BY_HOP, long), (PROTOCOL_ROUTING, vec![0, 253, 0, 0, 0, 0, 0])],
        vec![(PROTOCOL_DESTINATION, short); 4],
    ];
    with_flows(|c| {
        for (ip_options, extensions) in [4, 8, 20, 40].into_iter().zip(&chains) {
            let put = |p: &mut Packet| {
                // Router alert (RFC 2113), then the end of the options.
                p.ip_options = [vec![148, 4], vec![0; ip_options - 2]].concat();
                p.extensions = extensions.clone();
            };
            let out = c.send(FromGuest, |p| {
                put(p);
                p.payload = payload(77);
            });
            assert_eq!(out.ecn(), ECT_0);
            assert_eq!(c.state().snd_nxt, c.connection.guest_next);
            let out = c.send(ToGuest, |p| {
                put(p);
                p.flags |= ECE;
            });
            assert_eq!(out.flags(), ACK);
            assert_eq!(c.state().snd_una, c.connection.guest_next);
        }
    });
}

/// The priority and drop eligibility of a tag do not identify a flow, and VLAN 0 means no VLAN.
#[test]
fn tags_are_kept_and_their_priority_is_not_the_flow() {
    if !vcc_testing::can_attach() {
        return;
    }
    with_flows(|c| {
        let id = c.connection.shape.vlan.unwrap_or(0);
        for priority in 0..16u16 {
            let tag = (ETHERTYPE_VLAN, priority << 12 | id);
            let out = c.send(FromGuest, |p| (p.tags, p.payload) = (vec![tag], payload(10)));
            assert_eq!(out.ecn(), ECT_0);
            assert_eq!(read_u16(&out.frame, ETHERNET_BYTES), tag.1);
        }
    });
    // Equal addresses and ports in another VLAN are another flow.
    let mut run = DualRun::new(&usual());
    for vlan in [None, Some(1), Some(4094)] {
        let shape = Shape { vlan, ..Shape::plain(FromGuest) };
        Conversation::new(&mut run, shape, 20_000).open();
    }
    assert_eq!(run.datapath.flows().expect("flows").len(), 3);
    run.assert_all();
}

#[test]
fn super_segments_are_known_by_their_segment_size() {
    if !vcc_testing::can_attach() {
        return;
    }
    const SEG_BYTES: u16 = 600;
    with_flows(|c| {
        let agreed_bytes = c.state().mss_bytes;
        assert_ne!(agreed_bytes, SEG_BYTES);
        let out = c.send_gso(FromGuest, SEG_BYTES.into(), |p| p.payload = payload(3000));
        assert_eq!(out.ecn(), ECT_0);
        assert_eq!(c.state().mss_bytes, SEG_BYTES, "the guest's own cut");
        assert_eq!(c.state().segs_since_ack, 5);
        // Payload of one segment is not a super-segment, at any segment size.
        c.send_gso(FromGuest, 400, |p| p.payload = payload(400));
        assert_eq!(c.state().mss_bytes, SEG_BYTES);
        assert_eq!(c.state().segs_since_ack, 6);
        // Without a segment size the same bytes are one segment.
        c.data(FromGuest, 3000);
        assert_eq!(c.state().segs_since_ack, 7);
        assert_eq!(c.state().mss_bytes, agreed_bytes, "no more than the handshake allows");
    });
}

/// A super-segment beyond 64 KiB has length 0 in its IP header (RFC 2675).
#[test]
fn big_super_segments_have_no_length() {
    if !vcc_testing::can_attach() {
        return;
    }
    with_flows(|c| {
        let frame = c.connection.big_super_segment(FromGuest);
        let out = c.run.send(FromGuest, &frame, MSS_BYTES as u32).expect("a segment");
        assert_eq!(out.ecn(), ECT_0);
        assert_eq!(c.state().flight_bytes(), 2 * MSS_BYTES as u32);
        // Without a segment size, the length 0 is a contradiction.
        assert!(c.run.send(FromGuest, &frame, 0).is_none());
    });
}

/// A wrong checksum must stay wrong, so that the receiver detects it.
#[test]
fn a_wrong_checksum_is_not_repaired() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for ipv6 in [false, true] {
        let shape = Shape { ipv6, ..Shape::plain(FromGuest) };
        let mut c = Conversation::new(&mut run, shape, 20_000);
        c.open();
        let mut packet = c.connection.packet(ToGuest);
        packet.flags |= ECE;
        let mut frame = packet.frame();
        *frame.last_mut().expect("not empty") ^= 0x40;
        let out = c.run.datapath.run(ToGuest.program(), &frame, 0).expect("it runs").frame;
        let at = crate::layout::Layout::parse(&out, 0).expect("as it came");
        assert_eq!(at.flags(&out), ACK, "it was rewritten");
        assert!(!checksum::verify(&out, &at));
        *frame.last_mut().expect("not empty") ^= 0x40;
        let mut undone = out;
        *undone.last_mut().expect("not empty") ^= 0x40;
        assert!(checksum::verify(&undone, &at), "by just as much as it was");
    }
}
