//! Ends that are honest for a while, so that the others meet a connection in every state.

use vcc_engine::{Pool, Segment, sys};

use super::flow::Flow;
use crate::input::Input;

const ACK: u32 = sys::TCP_ACK;

/// A connection's segments at one time.
pub struct Ends<'a> {
    pub flow: &'a mut Flow,
    pub pool: &'a mut Pool,
    pub now_us: u64,
    window: u16,
}

impl<'a> Ends<'a> {
    pub fn new(flow: &'a mut Flow, pool: &'a mut Pool, now_us: u64) -> Self {
        Ends { flow, pool, now_us, window: 5000 }
    }

    fn guests(&self, seq: u32, flags: u32, payload_bytes: u32) -> Segment {
        let ack = self.flow.state.rcv_nxt;
        Segment {
            now_us: self.now_us,
            seq,
            ack,
            flags: flags as u16,
            payload_bytes,
            window: 500,
            ..Segment::default()
        }
    }

    fn peers(&self, ack: u32, flags: u32, payload_bytes: u32) -> Segment {
        let (now_us, seq, window) = (self.now_us, self.flow.state.rcv_nxt, self.window);
        Segment {
            now_us,
            seq,
            ack,
            flags: flags as u16,
            payload_bytes,
            window,
            ..Segment::default()
        }
    }

    /// A handshake with options of the input's choice.
    pub fn open(&mut self, input: &mut Input) {
        let how = input.u8();
        let guest_opens = how & 1 == 0;
        let offer = |bits: u8, mss: u16, wscale: u8| {
            let mut options = sys::OPT_MSS;
            options |= if bits & 1 == 0 { sys::OPT_WSCALE } else { 0 };
            options |= if bits & 2 == 0 { sys::OPT_SACK_PERMITTED } else { 0 };
            options |= if bits & 4 == 0 { sys::OPT_TIMESTAMPS } else { 0 };
            Segment {
                options: options as u16,
                mss,
                wscale,
                option_room_bytes: 20,
                window: 64240,
                ..Segment::default()
            }
        };
        let offers = input.u8();
        let (mss, wscale) =
            (input.pick(&[1460, 536, 8960, 65535, 13]), input.pick(&[7, 0, 10, 14]));
        let mut syn = offer(offers, mss, wscale);
        let mut answer = offer(offers >> 4, mss, wscale);
        syn.flags = (sys::TCP_SYN
            | [0, sys::TCP_ECE | sys::TCP_CWR, sys::TCP_ECN_BITS, 0][usize::from(how >> 1 & 3)])
            as u16;
        answer.flags = (sys::TCP_SYN
            | ACK
            | [sys::TCP_ECE, 0, sys::TCP_ECN_BITS, 0][usize::from(how >> 3 & 3)])
            as u16;
        if how & 0x20 != 0 {
            let hellos = if guest_opens {
                (&mut answer, sys::HELLO_ACCEPT)
            } else {
                (&mut syn, sys::HELLO_OFFER)
            };
            hellos.0.options |= sys::OPT_HELLO as u16;
            hellos.0.hello = hellos.1 as u8;
        }
        (syn.now_us, answer.now_us) = (self.now_us, self.now_us + 100);
        let (iss, irs) = (self.flow.iss, self.flow.irs);
        if guest_opens {
            self.flow.guest_sends(self.pool, Segment { seq: iss, ..syn });
            self.flow
                .guest_gets(self.pool, Segment { seq: irs, ack: iss.wrapping_add(1), ..answer });
            let ack = self.guests(iss.wrapping_add(1), ACK, 0);
            self.flow.guest_sends(self.pool, Segment { ack: irs.wrapping_add(1), ..ack });
        } else {
            self.flow.guest_gets(self.pool, Segment { seq: irs, ..syn });
            self.flow
                .guest_sends(self.pool, Segment { seq: iss, ack: irs.wrapping_add(1), ..answer });
            let ack = self.peers(iss.wrapping_add(1), ACK, 0);
            self.flow.guest_gets(self.pool, Segment { seq: irs.wrapping_add(1), ..ack });
        }
    }

    /// The guest sends full segments, single ones or together, within its window or not.
    pub fn data(&mut self, segs: u32, together: bool) {
        let mss_bytes = u32::from(self.flow.state.mss_bytes).max(1);
        if together && segs > 1 {
            let payload_bytes = (segs * mss_bytes).min(1 << 16);
            let all = self.guests(self.flow.state.snd_nxt, ACK | sys::TCP_PSH, payload_bytes);
            let seg_bytes = mss_bytes.min(payload_bytes - 1);
            self.flow.guest_sends(self.pool, Segment { seg_bytes, ..all });
            return;
        }
        for _ in 0..segs {
            let one = self.guests(self.flow.state.snd_nxt, ACK, mss_bytes);
            self.flow.guest_sends(self.pool, one);
        }
    }

    /// The peer acknowledges up to here.
    pub fn acknowledge(&mut self, up_to: u32, flags: u32) {
        let ack = self.peers(up_to, ACK | flags, 0);
        self.flow.guest_gets(self.pool, ack);
    }

    /// Rounds of data and its acknowledgements, some of which bear marks.
    pub fn transfer(&mut self, input: &mut Input) {
        let (rounds, segs, how) = (input.below(32), u32::from(input.below(40)) + 1, input.u8());
        for round in 0..rounds {
            let mss_bytes = u32::from(self.flow.state.mss_bytes);
            self.data(segs, how & 1 != 0);
            self.now_us += [20, 1_000, 30_000, 300_000][usize::from(how >> 1 & 3)];
            let flight_bytes = self.flow.state.flight_bytes();
            let marked = how & 8 != 0 && round % 8 == 7;
            let flags = if marked { sys::TCP_ECE } else { 0 };
            if how & 0x10 != 0 && flight_bytes > 2 * mss_bytes {
                self.acknowledge(self.flow.state.snd_una.wrapping_add(2 * mss_bytes), flags);
            }
            if how & 0x20 != 0 {
                let heard = self.flow.state.heard;
                let mut report = self.peers(self.flow.state.snd_nxt, ACK, 0);
                let [ect0, ce] = if marked { [0, flight_bytes] } else { [flight_bytes, 0] };
                report.options = sys::OPT_PACK as u16;
                report.feedback = sys::vcc_feedback {
                    ect0_bytes: heard.ect0_bytes.wrapping_add(ect0) & 0xff_ffff,
                    ce_bytes: heard.ce_bytes.wrapping_add(ce) & 0xff_ffff,
                };
                self.flow.guest_gets(self.pool, report);
            }
            self.acknowledge(self.flow.state.snd_nxt, flags);
        }
    }

    /// Three duplicate ACKs and more, the retransmission, and what acknowledges it.
    pub fn loss(&mut self, input: &mut Input) {
        let how = input.u8();
        let una = self.flow.state.snd_una;
        let mss_bytes = u32::from(self.flow.state.mss_bytes).max(1);
        for _ in 0..3 + (how & 7) {
            let mut duplicate = self.peers(una, ACK, 0);
            duplicate.options |= if how & 8 != 0 { sys::OPT_SACK as u16 } else { 0 };
            self.flow.guest_gets(self.pool, duplicate);
        }
        let again = self.guests(una, ACK, mss_bytes);
        self.flow.guest_sends(self.pool, again);
        self.now_us += 1000;
        let up_to =
            if how & 0x10 != 0 { self.flow.state.snd_nxt } else { una.wrapping_add(mss_bytes) };
        let mut answer = self.peers(up_to, ACK, 0);
        if how & 0x20 != 0 {
            answer.options |= sys::OPT_SACK as u16;
            (answer.dsack_seq, answer.dsack_bytes) = (una, mss_bytes);
        }
        self.flow.guest_gets(self.pool, answer);
    }

    /// The peer sends, and the guest acknowledges it.
    pub fn peer_data(&mut self, input: &mut Input) {
        let how = input.u8();
        let peer_mss_bytes = u32::from(self.flow.state.rcv_mss_bytes).max(1448);
        for _ in 0..=how & 3 {
            let mut data = self.peers(self.flow.state.snd_nxt, ACK, peer_mss_bytes);
            data.ip_ecn = how >> 2 & 3;
            data.flags |= if how & 0x10 != 0 { sys::TCP_CWR as u16 } else { 0 };
            self.flow.guest_gets(self.pool, data);
        }
        let mut ack = self.guests(self.flow.state.snd_nxt, ACK, 0);
        ack.option_room_bytes = how >> 2 & 0x38;
        self.flow.guest_sends(self.pool, ack);
    }
}
