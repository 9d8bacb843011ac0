//! Beside a native sender: a connection of Linux 7.2 to another was recorded at its port. vcc, in the
//! place of a guest without ECN, leaves the same ECN bits on each segment.

use super::*;

const RECORDED: &str = include_str!("linux-7.2.txt");
const GUEST_ISS: u32 = 0xffff_f000;
const GUESTS_BITS: u16 = sys::TCP_ECN_BITS as u16;

/// A line of the recording: whether the guest sent it, and the segment.
fn segment(line: &str) -> (bool, Seg) {
    let (way, rest) = line.split_once(' ').expect("a way");
    let words: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().expect("a number");
    let hex = |at: usize| u16::from_str_radix(words[at], 16).expect("a number");
    let from_guest = way == ">";
    let (own, other) = if from_guest { (GUEST_ISS, PEER_ISS) } else { (PEER_ISS, GUEST_ISS) };
    let mut segment = seg().at_us(1_000_000 + u64::from(number(0)));
    segment.0.seq = own.wrapping_add(number(1));
    segment.0.ack = other.wrapping_add(number(2));
    (segment.0.payload_bytes, segment.0.seg_bytes) = (number(3), number(4));
    (segment.0.flags, segment.0.ip_ecn) = (hex(5), number(6) as u8);
    (segment.0.options, segment.0.window) = (hex(7), number(8) as u16);
    (segment.0.mss, segment.0.wscale) = (number(9) as u16, number(10) as u8);
    segment.0.option_room_bytes = number(11) as u8;
    segment.0.feedback = sys::vcc_feedback { ect0_bytes: number(12), ce_bytes: number(13) };
    (from_guest, segment)
}

#[test]
fn the_bits_of_each_segment_are_a_native_senders() {
    let ours = !(sys::OPT_PACK | sys::OPT_ACCECN | sys::OPT_ACCECN_CE) as u16;
    let params = Params::default();
    let mut flow = vcc_engine::FlowState::default();
    let (mut sent, mut again, mut nxt) = (0, 0, 0);
    for (number, line) in RECORDED.lines().filter(|line| !line.starts_with('#')).enumerate() {
        let (from_guest, native) = segment(line);
        if !from_guest {
            flow.to_guest(&params, &native.0);
            continue;
        }
        let mut guests = native;
        guests.0.flags &= !GUESTS_BITS;
        guests.0.ip_ecn = 0;
        guests.0.options &= ours;
        let action = flow.from_guest(&params, &guests.0);
        let bits = |flags: u16, ip_ecn: u8| (flags & GUESTS_BITS, ip_ecn);
        assert_eq!(
            bits(action.flags, action.ip_ecn),
            bits(native.0.flags, native.0.ip_ecn),
            "segment {number}: {line}"
        );
        let end = native.0.seq.wrapping_sub(GUEST_ISS) + native.0.payload_bytes;
        sent += 1;
        again += u32::from(native.0.payload_bytes > 0 && end <= nxt);
        nxt = nxt.max(end);
    }
    assert!(sent > 200 && again > 10, "{sent} segments, {again} of them retransmissions");
    assert!(flow.marks > 10 && flow.forged == 0, "{} ACKs reported marks", flow.marks);
}
