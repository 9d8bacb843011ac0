//! Kernel and driver domain without the native engine: any frame must have the same result in both.
//! And their timers.

use vcc_domain::Verdict;
use vcc_engine::{FlowState, Params, Underlay, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};
use vcc_port::{AttachOptions, Counter, Flow, counters};

use crate::conversation::{Connection, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::direction::{Key, NEXT};
use crate::domain::{Domain, Output};
use crate::loaded::Loaded;
use crate::random::Random;
use crate::setup::{now_us, usual, usually};
use crate::state;

/// The driver domain's clock is read behind the kernel's. A machine that stops in between makes decisions
/// differ that depend on the time. The shortest such time is 100 ms.
const LAG_MAX_US: u64 = 20_000;

pub struct Shells {
    pub datapath: Loaded,
    domain: Domain,
    /// The clocks of the two never differed by more than `LAG_MAX_US`. What follows is not compared.
    pub is_in_step: bool,
}

impl Shells {
    pub fn new(options: &AttachOptions) -> Self {
        Self::around(Loaded::without_timer(options), options)
    }

    fn with_timer(options: &AttachOptions) -> Self {
        Self::around(Loaded::with_timer(options), options)
    }

    fn around(datapath: Loaded, options: &AttachOptions) -> Self {
        Shells { datapath, domain: Domain::new(options), is_in_step: true }
    }

    /// None if BPF_PROG_RUN refuses the frame.
    pub fn send(
        &mut self,
        place: &str,
        from: Direction,
        frame: &[u8],
        gso_size: u32,
    ) -> Option<Output> {
        let begin_us = now_us();
        let kernel = self.datapath.run(from.program(), frame, gso_size).ok()?;
        let now_us = now_us();
        let output = self.domain.send(place, from, now_us, frame, gso_size);
        self.is_in_step &= now_us - begin_us <= LAG_MAX_US;
        if !self.is_in_step {
            return Some(output);
        }
        let facks = output.also.iter().map(|_| {
            let fack = self.datapath.run_clone(&kernel.frame, gso_size).expect("it runs");
            assert_eq!(fack.return_value, NEXT, "{place}");
            fack.frame
        });
        let facks: Vec<_> = facks.collect();
        output.assert_equals(place, &kernel, facks.first().map(Vec::as_slice));
        Some(output)
    }

    /// The kernel's state of a flow.
    fn kernel_state(&self, key: &Key) -> Option<FlowState> {
        let flows = self.datapath.flows().expect("flows");
        let is_it = |flow: &&Flow| (flow.guest, flow.peer, flow.vlan) == *key;
        flows.iter().find(is_it).map(|flow| flow.state)
    }

    /// Sends a packet of a connection, which must pass.
    pub fn pass(&mut self, from: Direction, packet: &Packet) {
        let output = self.send("pass", from, &packet.frame(), 0).expect("it runs");
        assert_eq!(output.verdict, Verdict::Pass);
    }

    /// The handshake of a connection whose peer uses ECN.
    pub fn open(&mut self, connection: &mut Connection) {
        let (opener, listener) = (connection.shape.opener, connection.shape.opener.other());
        let mut syn = connection.syn();
        syn.flags |= if opener == ToGuest { ECE | CWR } else { 0 };
        self.pass(opener, &syn);
        connection.sent(opener, &syn);
        let mut syn_ack = connection.syn_ack();
        syn_ack.flags |= if listener == ToGuest { ECE } else { 0 };
        self.pass(listener, &syn_ack);
        connection.sent(listener, &syn_ack);
        self.pass(opener, &connection.packet(opener));
    }

    /// The counters are equal, except that of lost FACKs, of which BPF_PROG_RUN loses some.
    pub fn assert_counted(&self) {
        let kernel = self.datapath.counters().expect("counters");
        if self.is_in_step {
            self.domain.assert_counted(&kernel);
        }
    }
}

fn count(shells: &Shells, counter: Counter) -> u64 {
    shells.datapath.counters().expect("counters").get(counter)
}

/// The segments of a connection with vcc at both ends, in order.
fn life(shape: Shape, guest_port: u16) -> Vec<(Direction, Packet)> {
    let mut c = Connection::new(shape, guest_port);
    let (opener, listener) = (shape.opener, shape.opener.other());
    let (mut syn, mut syn_ack) = (c.syn(), c.syn_ack());
    if opener == ToGuest {
        syn.flags |= ECE | CWR;
        syn.options.extend(options::hello(HELLO_OFFER));
    }
    c.sent(opener, &syn);
    syn_ack.ack = syn.seq.wrapping_add(1);
    if opener == FromGuest {
        syn_ack.flags |= ECE;
        syn_ack.options.extend(options::hello(HELLO_ACCEPT));
    }
    c.sent(listener, &syn_ack);
    let mut frames = vec![(opener, syn), (listener, syn_ack), (opener, c.packet(opener))];
    for round in 1..=4 {
        for (from, ecn) in [(FromGuest, 0), (ToGuest, CE), (FromGuest, 0), (ToGuest, ECT_0)] {
            let mut data = c.packet(from);
            (data.payload, data.traffic_class) = (payload(MSS_BYTES), 0xb8 | ecn);
            c.sent(from, &data);
            frames.push((from, data));
        }
        frames.push((FromGuest, c.packet(FromGuest)));
        let mut report = c.packet(ToGuest);
        report.options.extend(options::pack(1 + round * 2 * MSS_BYTES as u32, 0));
        frames.push((ToGuest, report));
    }
    frames
}

/// Overwrites bytes of the headers, which makes checksums and lengths wrong, and changes the
/// length.
fn harm(random: &mut Random, frame: &mut Vec<u8>) {
    let headers = frame.len().min(ETHERNET_BYTES + TAG_BYTES + IPV6_BYTES + 60) as u32;
    for _ in 0..random.pick(&[0, 1, 1, 1, 2, 4]) {
        let bit = 1 << random.below(8);
        let at = random.below(headers) as usize;
        frame[at] = random.pick(&[frame[at] ^ bit, 0, 0xff]);
    }
    match random.below(20) {
        0 => frame.truncate(random.below(frame.len() as u32) as usize),
        1 => frame.extend(vec![0xa5; random.below(60) as usize]),
        _ => {}
    }
}

/// Returns false if the machine stopped meanwhile. Counts the frames that passed as they came, and the
/// others.
fn compare_harmed(seed: u64, compared: &mut [u64; 2]) -> bool {
    const LIVES: usize = 6;
    const SHAPES: usize = 8;
    let mut random = Random::new(seed);
    let underlay: Underlay = random.pick(&["reno-ecn", "dctcp"]).parse().expect("an underlay");
    let police = random.percent(50);
    let mut shells = Shells::new(&usually(Params::with(|p| {
        p.underlay = underlay.number();
        p.police = police.into();
    })));
    for at in 0..LIVES * SHAPES {
        let shape = Shape::all().nth(at % SHAPES).expect("a shape");
        // Later lives use the same ports.
        let guest_port = 50_000 + (at % SHAPES) as u16;
        for (step, (from, packet)) in life(shape, guest_port).into_iter().enumerate() {
            let place = format!("seed {seed}, life {at}, step {step}, {shape:?}, {from:?}");
            let mut frame = packet.frame();
            // The first lives are not disturbed, so that there are flows.
            if at >= SHAPES {
                harm(&mut random, &mut frame);
            }
            let gso_size = random.pick(&[0, 0, 0, 100, MSS_BYTES as u32]);
            let output = shells.send(&place, from, &frame, gso_size);
            if !shells.is_in_step {
                return false;
            }
            compared[usize::from(output.is_some_and(|output| output.frame != frame))] += 1;
        }
    }
    shells.assert_counted();
    true
}

#[test]
fn whatever_comes_the_two_do_not_differ() {
    if !vcc_testing::can_attach() {
        return;
    }
    const SEEDS: u64 = 12;
    const ATTEMPTS: usize = 20;
    let mut compared = [0, 0];
    for seed in 1..=SEEDS {
        let is_whole = (0..ATTEMPTS).any(|_| compare_harmed(seed, &mut compared));
        assert!(is_whole, "the machine stops too often");
    }
    let [untouched, changed] = compared;
    assert!(untouched > 500 && changed > 500, "{compared:?}");
}

/// TCP behind an extension header of nearly every size that fits into a page.
#[test]
fn tcp_far_into_a_frame() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut shells = Shells::new(&usual());
    for vlan in [None, Some(9)] {
        let shape = Shape { ipv6: true, vlan, opener: FromGuest };
        for (units, guest_port) in (1..=255).zip(20_000..) {
            let mut syn = Connection::new(shape, guest_port).syn();
            let fill = vec![0; 8 * units - 4];
            // The content of its options does not matter.
            let rest = [vec![units as u8 - 1, 1, fill.len() as u8], fill].concat();
            syn.extensions = vec![(PROTOCOL_DESTINATION, rest)];
            let frame = syn.frame();
            let place = format!("{units} units, {vlan:?}");
            let output = shells.send(&place, FromGuest, &frame, 0).expect("it runs");
            assert_ne!(output.frame, frame, "{place}");
        }
    }
    assert_eq!(count(&shells, counters::MALFORMED), 0);
    shells.assert_counted();
}

/// A checksum of 0xffff is the other zero (RFC 1624, 3). Both must be updated in the same way.
#[test]
fn either_zero_in_a_checksum() {
    if !vcc_testing::can_attach() {
        return;
    }
    for check in [0, 0xffff, 0x1234] {
        let mut shells = Shells::new(&usual());
        for shape in Shape::all() {
            for (step, (from, packet)) in life(shape, 20_000).into_iter().enumerate() {
                let mut frame = packet.frame();
                let l3 = if shape.vlan.is_some() { 18 } else { 14 };
                let l4 = l3 + if shape.ipv6 { IPV6_BYTES } else { IPV4_BYTES };
                write_u16(&mut frame, l4 + 16, check);
                if !shape.ipv6 {
                    write_u16(&mut frame, l3 + 10, check);
                }
                let place = format!("{check:#x}, step {step}, {shape:?}, {from:?}");
                shells.send(&place, from, &frame, 0).expect("it runs");
            }
        }
        shells.assert_counted();
    }
}

/// A retransmission timeout that no segment shows is found by the timer's first and second look at
/// the flow, a second apart, in the kernel's time and in ours.
#[test]
fn timers_look_as_often() {
    if !vcc_testing::can_attach() {
        return;
    }
    const TWO_LOOKS_US: u64 = 2_500_000;
    let params = Params::with(|p| p.idle_handshake_ms = 300);
    let mut shells = Shells::with_timer(&usually(params));
    let begin_us = now_us();
    let mut waiting = Connection::new(Shape::plain(FromGuest), 20_000);
    shells.open(&mut waiting);
    let send_data = |shells: &mut Shells, connection: &mut Connection| {
        let data = Packet { payload: payload(MSS_BYTES), ..connection.packet(FromGuest) };
        shells.pass(FromGuest, &data);
        connection.sent(FromGuest, &data);
    };
    send_data(&mut shells, &mut waiting);
    shells.pass(ToGuest, &waiting.packet(ToGuest));
    send_data(&mut shells, &mut waiting);
    let waiting = waiting.key();
    let unanswered = Connection::new(Shape::plain(FromGuest), 20_001);
    shells.pass(FromGuest, &unanswered.syn());
    let unanswered = unanswered.key();

    let kernel_now = || shells.kernel_state(&waiting).expect("the flow is there");
    vcc_testing::eventually("the second look", || kernel_now().rto_backoff == 2);
    let kernel = kernel_now();
    assert_eq!(shells.domain.advance_until(begin_us + TWO_LOOKS_US), []);
    let ours = shells.domain.state(&waiting).expect("the flow is there");
    assert_eq!((kernel.rto_backoff, ours.rto_backoff), (2, 2));
    assert_same_but_for_time(&kernel, ours);
    assert!(shells.kernel_state(&unanswered).is_none(), "forgotten");
    assert!(shells.domain.state(&unanswered).is_none(), "forgotten");
}

/// Without progress, a guest without SACK gets duplicate ACKs long before its retransmission
/// timeout.
#[test]
fn emission_is_decided_alike() {
    if !vcc_testing::can_attach() {
        return;
    }
    // Far away, however busy the machine is.
    const RTO_MIN_US: u32 = 60_000_000;
    let params = Params::with(|p| {
        p.emit = 1;
        p.rto_min_us = RTO_MIN_US;
    });
    let mut shells = Shells::with_timer(&AttachOptions { params, ..usual() });
    let mut c = Connection::new(Shape::plain(FromGuest), 20_000);
    c.offers.sack = false;
    let mut send = |from: Direction, packet: Packet, c: &mut Connection| {
        c.sent(from, &packet);
        let gone = shells.send("emission", from, &packet.frame(), 0).expect("it runs");
        assert_eq!(gone.verdict, Verdict::Pass);
    };
    let data = |c: &Connection| Packet { payload: payload(MSS_BYTES), ..c.packet(FromGuest) };
    send(FromGuest, c.syn(), &mut c);
    send(ToGuest, c.syn_ack(), &mut c);
    send(FromGuest, c.packet(FromGuest), &mut c);
    send(FromGuest, data(&c), &mut c);
    send(ToGuest, c.packet(ToGuest), &mut c);
    for _ in 0..6 {
        send(FromGuest, data(&c), &mut c);
    }
    let kernel_state = || shells.kernel_state(&c.key()).expect("the flow is there");
    vcc_testing::eventually("duplicate ACKs are due", || kernel_state().has(sys::FLOW_PRODDED));
    let kernel = kernel_state();
    // Three, and another one a little later. In the kernel they are events, which user space
    // carries out. A busy machine makes for long round trips, for which both wait.
    const LATER_US: u64 = 10_000_000;
    assert_eq!(shells.domain.advance_until(now_us() + LATER_US).len(), 4);
    let ours = shells.domain.state(&c.key()).expect("the flow is there");
    assert_same_but_for_time(&kernel, ours);
}

/// Compares all fields that do not depend on the time.
fn assert_same_but_for_time(kernel: &FlowState, ours: &FlowState) {
    let timeless = |state: &FlowState| {
        let path = sys::vcc_path {
            rtt_us: 0,
            rtt_min_us: 0,
            rtt_least_us: 0,
            least_since_us: 0,
            rate_bytes_per_ms: 0,
            ..state.cc.path
        };
        FlowState(sys::vcc_flow {
            cc: sys::vcc_cc_state { path, ..state.cc },
            progress_us: 0,
            last_seen_ms: 0,
            rtt_sent_us: 0,
            validated_us: 0,
            sent_us: 0,
            srtt_us8: 0,
            rttvar_us4: 0,
            asked_us: 0,
            sends: state.sends & !(sys::ASKED_AT_TICK | sys::SENDS_LATE) as u8,
            late_seq: 0,
            fabric_us64: 0,
            fabric_worst_us: 0,
            guest_us64: 0,
            guest_worst_us: 0,
            ..state.0
        })
    };
    let (kernel, ours) = (timeless(kernel), timeless(ours));
    let differences = state::differences(&kernel, &ours);
    assert!(state::bytes(&kernel) == state::bytes(&ours), "{differences}");
}
