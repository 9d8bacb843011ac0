//! FACKs that accompany data.

use vcc_engine::{Params, Underlay, sys};
use vcc_frames::wire::*;
use vcc_frames::{checksum, options, payload};

use super::*;
use crate::conversation::{MSS_BYTES, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::layout::Layout;
use crate::setup::{usual, usually};

/// The length of a FACK from its TCP header on.
const FACK_BYTES: usize = TCP_BYTES + 12;

/// With data, also of super-segments: an ACK of one byte less, header and option alone.
#[test]
fn a_fack_goes_beside_data() {
    let underlay: Underlay = "dctcp".parse().expect("one");
    with_agreed(&usually(Params::with(|p| p.underlay = underlay.number())), |c| {
        for (bytes, gso_size) in [(1, 0), (MSS_BYTES, 0), (3000, 1448), (3000, 1000)] {
            for flags in [ACK, ACK | PSH, ACK | FIN, ACK | URG, ACK | ECE | CWR] {
                make_due(c, 500, CE);
                let ack = c.connection.peer_next;
                let out = c.send_gso(FromGuest, gso_size, |p| {
                    p.payload = payload(bytes);
                    p.flags = flags;
                    p.traffic_class = 0xb8;
                });
                // FINs that repeat.
                c.connection.guest_next -= u32::from(flags & FIN != 0);
                assert!(out.frame.ends_with(&payload(bytes)));
                let fack = out.fack.expect("a FACK");
                let at = Layout::parse(&fack, 0).expect("well-formed");
                assert_eq!(fack.len(), at.l4 + FACK_BYTES);
                assert_eq!((at.payload, at.end), (fack.len(), fack.len()));
                assert_eq!(at.flags(&fack), ACK);
                assert_eq!(read_u32(&fack, at.l4 + 8), ack - 1);
                assert_eq!(at.traffic_class(&fack), 0xb8 | ECT_0, "its class as the data's");
                assert!(checksum::verify(&fack, &at));
            }
        }
    });
}

/// IPv4 options and IPv6 extension headers stay in front of the FACK.
#[test]
fn a_fack_follows_ip_headers() {
    with_agreed(&usual(), |c| {
        for words in 1..=10 {
            make_due(c, 500, CE);
            let out = c.send(FromGuest, |p| {
                p.ip_options = [vec![148, 4], vec![0; 4 * words - 2]].concat();
                // PadN (RFC 8200, 4.2).
                let fill = vec![0; 8 * words - 4];
                let rest = [vec![words as u8 - 1, 1, fill.len() as u8], fill].concat();
                p.extensions = vec![(PROTOCOL_DESTINATION, rest)];
                p.payload = payload(900);
            });
            let fack = out.fack.expect("a FACK");
            assert_eq!(Layout::parse(&fack, 0).expect("well-formed").end, fack.len());
        }
    });
}

/// Beyond 64 KiB the IP header of a super-segment has no length (RFC 2675); its FACK's has one.
#[test]
fn a_fack_beside_a_big_super_segment() {
    with_agreed(&usual(), |c| {
        make_due(c, 500, CE);
        let frame = c.connection.big_super_segment(FromGuest);
        let out = c.run.send(FromGuest, &frame, MSS_BYTES as u32).expect("a segment");
        let fack = out.fack.expect("a FACK");
        assert!(checksum::verify(&fack, &Layout::parse(&fack, 0).expect("whole")));
    });
}

/// A clone of whose flow nothing is known any more, or that is no TCP, is not let out.
#[test]
fn a_clone_without_a_flow_is_dropped() {
    if !vcc_testing::can_attach() {
        return;
    }
    let run = DualRun::new(&usual());
    let connection = crate::conversation::Connection::new(Shape::plain(FromGuest), 20_000);
    let mut data = connection.packet(FromGuest);
    data.payload = payload(100);
    let mut fragment = data.frame();
    fragment[ETHERNET_BYTES + 6] = 0x20;
    for frame in [data.frame(), fragment] {
        let output = run.datapath.run_clone(&frame, 0).expect("it runs");
        assert_eq!(output.return_value, crate::direction::DROP);
    }
}

/// A FACK is for us alone. With payload it is a segment like others, but for its option.
#[test]
fn a_fack_does_not_reach_the_guest_and_payload_does() {
    with_agreed(&usual(), |c| {
        c.data(FromGuest, MSS_BYTES);
        let fack = |ect0_bytes| options::fack(ect0_bytes, 0);
        let ack = c.connection.guest_next.wrapping_sub(1);
        let out = c.send(ToGuest, |p| (p.ack, p.options) = (ack, fack(1001)));
        assert_eq!(u32::from(out.action.verdict), sys::VCC_CONSUME);
        assert!(out.dropped);
        assert_eq!(c.state().heard.ect0_bytes, 1001);
        let out = c.send(ToGuest, |p| (p.options, p.payload) = (fack(1002), payload(100)));
        assert!(!out.dropped && out.frame.ends_with(&payload(100)));
        assert_eq!(out.options(), options::nops(12));
        assert_eq!(c.state().rcv_nxt, c.connection.peer_next);
    });
}
