//! Frames through the driver domain's port. Two ports get the same, one with partial checksums, and
//! must send the same.

mod connection;
mod script;

use std::sync::Arc;

use vcc_domain::{BufferSpec, Checksum, Frame, Out, Port, ReceiveRing, Rule, Rules, Verdict};
use vcc_engine::{BufferPolicy, FlowKey, Mode, Params};
use vcc_frames::wire::*;
use vcc_frames::{Headers, checksum, hex};

use crate::steps;
pub use script::{Script, Sent, Step};

const MAX_FLOWS: usize = 3;
const NS_PER_US: u64 = 1000;
const RING_SEGS: u32 = 256;
/// More deadlines than these within a wait: the port asks to be called for nothing.
const MOST_DEADLINES: u32 = 100_000;

pub fn run(bytes: &[u8]) {
    let script = Script::new(bytes);
    let mut twins = Twins::new(script.first);
    for step in script {
        twins.step(step);
    }
}

/// A port with what arrives in full, and one with partial checksums.
struct Twins {
    full: Port,
    partial: Port,
    now_ns: u64,
    room: ReceiveRing,
    /// Whether every frame was a right TCP segment, so that what the port sends is one.
    all_right: bool,
}

impl Twins {
    fn new(params: Params) -> Self {
        let buffer = BufferSpec { size_bytes: 100_000, policy: BufferPolicy::Fair };
        let port = Port::with_buffer(params, MAX_FLOWS, buffer);
        let room = ReceiveRing { size_segs: RING_SEGS, free_segs: RING_SEGS, behind_segs: 0 };
        Twins { full: port.clone(), partial: port, now_ns: 0, room, all_right: true }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Frame(sent) => self.send(&sent),
            Step::Wait { us } => self.wait(us * NS_PER_US),
            Step::Treat(params) => self.both(|port, _| port.set_params(params)),
            Step::Rule(params) => self.both(|port, _| port.set_rules(by_turns(&params))),
            Step::Room { free_segs } => {
                self.room.free_segs = free_segs;
                let (now_ns, room) = (self.now_ns, self.room);
                self.both(|port, out| port.set_room(now_ns, room, out));
            }
        }
        assert!(self.full.flows().count() <= MAX_FLOWS, "more flows than the table takes");
        assert_eq!(self.full.next_deadline_ns(), self.partial.next_deadline_ns());
    }

    /// At both ports, which send the same.
    fn both(&mut self, mut what: impl FnMut(&mut Port, &mut Out)) {
        let [mut full, mut partial] = [Out::default(), Out::default()];
        what(&mut self.full, &mut full);
        what(&mut self.partial, &mut partial);
        self.compare(&full, &partial);
    }

    fn compare(&self, full: &Out, partial: &Out) {
        for (full, partial) in
            [(&full.to_fabric, &partial.to_fabric), (&full.to_guest, &partial.to_guest)]
        {
            assert_eq!(full.len(), partial.len(), "frames beside it");
            for (full, partial) in full.iter().zip(partial) {
                self.compare_frames(full, partial);
            }
        }
    }

    fn compare_frames(&self, full: &Frame, partial: &Frame) {
        assert_eq!(full.gso_size, partial.gso_size);
        if !self.all_right {
            return;
        }
        let at = headers(&full.bytes).expect("a TCP segment");
        assert!(full.checksum == Checksum::Full && checksum::verify(&full.bytes, &at), "checksums");
        let mut completed = partial.bytes.clone();
        if partial.checksum == Checksum::Partial {
            checksum::complete(&mut completed, &at);
        }
        assert_same(&completed, &full.bytes);
    }

    fn send(&mut self, sent: &Sent) {
        steps::count();
        self.all_right &= sent.at.is_some();
        let came =
            Frame { bytes: sent.bytes.clone(), gso_size: sent.gso_size, checksum: Checksum::Full };
        let mut twin = came.clone();
        if let Some(at) = &sent.at {
            checksum::make_partial(&mut twin.bytes, at);
            twin.checksum = Checksum::Partial;
        }
        let nothing = self.changes_nothing();
        let (mut frame, mut out, mut also) = (came, Out::default(), Out::default());
        let verdict =
            pass(&mut self.full, self.now_ns, sent.from_guest, &mut frame, &mut out, self.room);
        let same =
            pass(&mut self.partial, self.now_ns, sent.from_guest, &mut twin, &mut also, self.room);
        assert_eq!(verdict, same);
        self.compare(&out, &also);
        if let (Verdict::Pass, Some(at)) = (verdict, &sent.at) {
            assert_laws(sent, at, &frame);
            self.compare_passed(&frame, &twin);
            assert!(!nothing || frame.bytes == sent.bytes, "what is not translated stays as it is");
        }
    }

    fn compare_passed(&self, full: &Frame, partial: &Frame) {
        let at = headers(&full.bytes).expect("a TCP segment");
        let mut completed = partial.bytes.clone();
        checksum::complete(&mut completed, &at);
        assert_same(&completed, &full.bytes);
    }

    /// Never has a treatment changed a frame.
    fn changes_nothing(&self) -> bool {
        let params = self.full.params();
        let shadows = [Mode::Shadow, Mode::Ignore].map(Some).contains(&params.mode());
        self.full.epoch() == 0
            && shadows
            && self.full.flows().next().is_none()
            && self.full.minisocks() == 0
            && self.full.held_bytes() == 0
    }

    fn wait(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        let mut deadlines = 0;
        while let Some(at_ns) = self.full.next_deadline_ns().filter(|&at_ns| at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let now_ns = self.now_ns;
            steps::count();
            self.both(|port, out| port.advance(now_ns, out));
            deadlines += 1;
            assert!(deadlines < MOST_DEADLINES, "deadlines for nothing");
        }
        self.now_ns = until_ns;
    }
}

/// A partial checksum, completed, is the one that was full.
fn assert_same(completed: &[u8], full: &[u8]) {
    assert!(completed == full, "completed {}\nfull      {}", hex(completed), hex(full));
}

/// As the card does it.
fn pass(
    port: &mut Port,
    now_ns: u64,
    from_guest: bool,
    frame: &mut Frame,
    out: &mut Out,
    room: ReceiveRing,
) -> Verdict {
    if from_guest {
        return port.from_guest(now_ns, frame, out);
    }
    let (verdict, receipt) = port.to_guest(now_ns, frame, out);
    if verdict == Verdict::Pass && port.snoops() && room.free_segs > 0 {
        port.set_room(now_ns, room, out);
        port.placed(now_ns, frame.clone(), receipt, out);
    }
    verdict
}

/// All but the first are in a pool.
fn by_turns(params: &[Params]) -> Rules {
    let count = params.len();
    let rule = |(at, params): (usize, &Params)| {
        let mut params = *params;
        (params.0.pool_weight, params.0.pool_bytes) = (at as u16, 1 << 14);
        Rule { name: at.to_string(), params }
    };
    Rules {
        rules: params.iter().enumerate().map(rule).collect(),
        pools: vec!["pool".to_owned()],
        judge: Arc::new(move |key: &FlowKey, _| usize::from(key.guest().port()) % count),
        polices: params.iter().any(|params| params.0.police != 0),
    }
}

/// What holds of any right segment that passes.
fn assert_laws(sent: &Sent, at: &Headers, frame: &Frame) {
    let out = headers(&frame.bytes).expect("a TCP segment");
    assert_eq!((out.ipv6, out.l3, out.l4), (at.ipv6, at.l3, at.l4), "headers stay where they are");
    assert!(checksum::verify(&frame.bytes, &out), "law 13: checksums");
    // A port that holds segments may let a part pass. The text of a RST is not the stream's.
    let [came, left] =
        [(&sent.bytes, at), (&frame.bytes, &out)].map(|(bytes, at)| payload(bytes, at));
    let offset = read_u32(&frame.bytes, out.l4 + 4).wrapping_sub(read_u32(&sent.bytes, at.l4 + 4));
    let part = came.get(offset as usize..).and_then(|rest| rest.get(..left.len()));
    let is_reset = read_u16(&sent.bytes, at.l4 + 12) & RST != 0;
    let is_part = if is_reset { left == came } else { left.is_empty() || part == Some(left) };
    assert!(is_part, "law 9: payload, from offset {offset}");
    let ends = at.l4 - if at.ipv6 { 32 } else { 8 }..at.l4 + 4;
    if at.ipv6 || at.l4 == at.l3 + IPV4_BYTES {
        assert_eq!(sent.bytes[ends.clone()], frame.bytes[ends], "addresses and ports");
    }
}

fn payload<'a>(frame: &'a [u8], at: &Headers) -> &'a [u8] {
    &frame[at.l4 + usize::from(frame[at.l4 + 12] >> 4) * 4..at.end]
}

/// Where the headers of a TCP segment are; None if it is none.
fn headers(frame: &[u8]) -> Option<Headers> {
    let mut l3 = ETHERNET_BYTES;
    while [ETHERTYPE_VLAN, ETHERTYPE_QINQ].contains(&u16_at(frame, l3 - 2)?) {
        l3 += TAG_BYTES;
    }
    let ipv6 = u16_at(frame, l3 - 2)? == ETHERTYPE_IPV6;
    let (mut l4, end) = match ipv6 {
        true => (l3 + IPV6_BYTES, l3 + IPV6_BYTES + usize::from(u16_at(frame, l3 + 4)?)),
        false => {
            let header_bytes = usize::from(frame.get(l3)? & 0xf) * 4;
            (l3 + header_bytes, l3 + usize::from(u16_at(frame, l3 + 2)?))
        }
    };
    let mut protocol = *frame.get(if ipv6 { l3 + 6 } else { l3 + 9 })?;
    while ipv6 && [PROTOCOL_DESTINATION, PROTOCOL_HOP_BY_HOP, PROTOCOL_ROUTING].contains(&protocol)
    {
        protocol = *frame.get(l4)?;
        l4 += 8 + 8 * usize::from(*frame.get(l4 + 1)?);
    }
    let is_whole = end <= frame.len() && l4 + TCP_BYTES <= end;
    (protocol == PROTOCOL_TCP && is_whole).then_some(Headers { ipv6, l3, l4, end })
}

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}
