//! Which rule of a policy the datapath finds for a connection, and what a new policy does to those
//! that are there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;

use vcc_engine::{FlowState, Underlay, sys};
use vcc_policy::{Connection, Policy, Role};
use vcc_port::{AttachOptions, Datapath, Program, SharedPolicy, counters, testing};

use crate::conversation::{Connection as Ends, MSS_BYTES, Shape};
use crate::dual::Direction::{self, FromGuest, ToGuest};
use crate::packet::{Packet, options, payload};
use crate::random::Random;
use crate::wire::*;

/// The port's index among those of the policy.
const INDEX: u32 = 3;

struct Ruled {
    shared: SharedPolicy,
    datapath: Datapath,
    policy: Policy,
    tenant: Option<&'static str>,
}

impl Ruled {
    fn new(text: &str, tenant: Option<&'static str>) -> Self {
        let shared = SharedPolicy::unpinned().expect("maps");
        let options = AttachOptions::default();
        let datapath = Datapath::load_under(&shared, INDEX, &options).expect("loaded");
        let mut ruled = Self { shared, datapath, policy: parse(""), tenant };
        ruled.apply(text);
        ruled
    }

    fn apply(&mut self, text: &str) {
        self.policy = parse(text);
        self.shared.apply(&self.policy, &[(INDEX, self.tenant)]).expect("applied");
    }

    fn send(&self, program: Program, packet: &Packet) -> Vec<u8> {
        let out = self.datapath.run(program, &packet.frame(), 0).expect("run");
        assert_eq!(out.return_value, -1, "passed on");
        out.frame
    }

    /// The rule of the only flow.
    fn rule(&self) -> Option<&str> {
        let flows = self.datapath.flows().expect("flows");
        assert!(flows.len() <= 1);
        flows.first().map(|flow| self.policy.rules()[usize::from(flow.state.rule)].name())
    }
}

fn parse(text: &str) -> Policy {
    Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}\n{text}")).policy
}

fn syn(from: SocketAddr, to: SocketAddr, vlan: Option<u16>) -> Packet {
    let mut packet = Packet::new(from, to);
    packet.flags = SYN;
    packet.options = options::join(&[options::mss(1460), options::nops(1), options::wscale(7)]);
    packet.tags = vlan.map(|id| (0x8100, id)).into_iter().collect();
    packet
}

/// One of few, so that rules and connections meet.
fn address(rng: &mut Random) -> IpAddr {
    let low = rng.below(4) as u8;
    match rng.below(3) {
        0 => Ipv4Addr::new(10, low, rng.below(3) as u8, rng.below(3) as u8).into(),
        1 => Ipv4Addr::new(192, 0, 2, low).into(),
        _ => Ipv6Addr::new(0xfd00, low.into(), 0, rng.below(3) as u16, 0, 0, 0, 1).into(),
    }
}

fn network(rng: &mut Random) -> String {
    let (address, longest) = match address(rng) {
        IpAddr::V4(address) => (IpAddr::from(address), 32),
        IpAddr::V6(address) => (IpAddr::from(address), 128),
    };
    let length =
        [0, 7, 8, 16, 22, 24, 30, 31, 32, 64, 127, 128][rng.below(12) as usize].min(longest);
    let net = ipnet::IpNet::new(address, length).expect("a length").trunc();
    format!("\"{net}\"")
}

fn random_policy(rng: &mut Random) -> String {
    let mut text = String::from(
        "[[ports]]\ndevice = \"a*\"\ntenant = \"acme\"\n\
         [[ports]]\ndevice = \"b*\"\ntenant = \"bolt\"\n",
    );
    for number in 0..rng.below(40) {
        text += &format!("[[rules]]\nname = \"r{number}\"\n");
        if rng.below(4) == 0 {
            text +=
                ["tenant = \"acme\"\n", "tenant = [\"acme\", \"bolt\"]\n"][rng.below(2) as usize];
        }
        if rng.below(2) == 0 {
            let nets: Vec<String> = (0..=rng.below(3)).map(|_| network(rng)).collect();
            text += &format!("peer = [{}]\n", nets.join(", "));
        }
        for (key, chance) in [("guest_port", 4), ("peer_port", 4)] {
            if rng.below(chance) == 0 {
                let first = 1 + rng.below(6);
                text += &format!("{key} = \"{first}-{}\"\n", first + rng.below(3));
            }
        }
        if rng.below(5) == 0 {
            text += ["role = \"client\"\n", "role = \"server\"\n"][rng.below(2) as usize];
        }
        if rng.below(5) == 0 {
            text += &format!("vlan = {}\n", rng.below(3));
        }
        if rng.below(8) == 0 {
            text += "mode = \"ignore\"\n";
        }
    }
    text + "[default]\nunderlay = \"dctcp\"\n"
}

/// The kernel's look-ups against one rule after the other, over policies and connections of which
/// many lie on the edges of each other.
#[test]
fn the_datapath_finds_the_rule_that_the_file_says() {
    if !testing::can_attach() {
        return;
    }
    let mut rng = Random::new(0x5eed_9011);
    let mut ruled = Ruled::new("", Some("acme"));
    let (mut ignored, mut matched) = (0, std::collections::BTreeSet::new());
    for _ in 0..40 {
        let tenant = [Some("acme"), Some("bolt"), None][rng.below(3) as usize];
        ruled.tenant = tenant;
        ruled.apply(&random_policy(&mut rng));
        for _ in 0..60 {
            let guest = address(&mut rng);
            let mut peer = address(&mut rng);
            while peer.is_ipv4() != guest.is_ipv4() {
                peer = address(&mut rng);
            }
            let connection = Connection {
                tenant: tenant.map(str::to_owned),
                guest: SocketAddr::new(guest, 1 + rng.below(8) as u16),
                peer: SocketAddr::new(peer, 1 + rng.below(8) as u16),
                vlan: [None, Some(1), Some(2)][rng.below(3) as usize],
                role: [Role::Client, Role::Server][rng.below(2) as usize],
            };
            ruled.datapath.forget_flows().expect("forgotten");
            let before = ruled.datapath.counters().expect("counters").get(counters::IGNORED);
            let Connection { guest, peer, vlan, .. } = connection;
            match connection.role {
                Role::Client => ruled.send(Program::FromGuest, &syn(guest, peer, vlan)),
                Role::Server => ruled.send(Program::ToGuest, &syn(peer, guest, vlan)),
            };
            let expected = &ruled.policy.rules()[ruled.policy.judge(&connection)];
            let after = ruled.datapath.counters().expect("counters").get(counters::IGNORED);
            match ruled.rule() {
                Some(name) => assert_eq!(name, expected.name(), "{connection:?}"),
                None => assert_eq!(expected.treatment().mode.to_string(), "ignore"),
            }
            assert_eq!(after - before, u64::from(ruled.rule().is_none()));
            ignored += after - before;
            matched.insert(expected.name().to_owned());
        }
    }
    assert!(ignored > 50 && matched.len() > 10, "{ignored} {matched:?}");
}

/// Ends of a connection whose frames go through a ruled datapath.
struct Ruling<'run> {
    ruled: &'run Ruled,
    ends: Ends,
}

impl<'run> Ruling<'run> {
    fn open(ruled: &'run Ruled, guest_port: u16) -> Self {
        let ends = Ends::new(Shape::plain(FromGuest), guest_port);
        let mut ruling = Self { ruled, ends };
        let syn = ruling.ends.syn();
        ruling.send(FromGuest, &syn);
        let mut syn_ack = ruling.ends.syn_ack();
        syn_ack.flags |= ECE;
        ruling.send(ToGuest, &syn_ack);
        let ack = ruling.ends.packet(FromGuest);
        ruling.send(FromGuest, &ack);
        ruling
    }

    fn send(&mut self, from: Direction, packet: &Packet) -> Vec<u8> {
        self.ends.sent(from, packet);
        let program = match from {
            FromGuest => Program::FromGuest,
            ToGuest => Program::ToGuest,
        };
        self.ruled.send(program, packet)
    }

    fn data(&mut self, from: Direction) -> Vec<u8> {
        let mut packet = self.ends.packet(from);
        packet.payload = payload(MSS_BYTES);
        self.send(from, &packet)
    }

    fn state(&self) -> Option<FlowState> {
        let (guest, ..) = self.ends.key();
        let flows = self.ruled.datapath.flows().expect("flows");
        flows.into_iter().find(|flow| flow.guest == guest).map(|flow| flow.state)
    }
}

fn window(frame: &[u8]) -> u16 {
    u16::from_be_bytes([
        frame[ETHERNET_BYTES + IPV4_BYTES + 14],
        frame[ETHERNET_BYTES + IPV4_BYTES + 15],
    ])
}

fn ip_ecn(frame: &[u8]) -> u8 {
    frame[ETHERNET_BYTES + 1] & CE
}

const ENFORCED: &str = "[[rules]]\nname = \"first\"\npeer_port = 443\nunderlay = \"reno-ecn\"\n";

#[test]
fn live_flows_are_judged_anew_at_their_next_packet() {
    if !testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let mut live = Ruling::open(&ruled, 40_000);
    assert_eq!(ip_ecn(&live.data(FromGuest)), ECT_0, "under an underlay with ECN");
    let ends = live.ends;
    let underlay = |name: &str| name.parse::<Underlay>().expect("an underlay").number();

    ruled.apply("[[rules]]\nname = \"none\"\npeer_port = 80\n[default]\nunderlay = \"dctcp\"");
    let mut live = Ruling { ruled: &ruled, ends };
    assert_eq!(live.state().expect("a flow").underlay, underlay("reno-ecn"), "nothing passed yet");
    let cwnd_segs = live.state().expect("a flow").cc.cwnd_segs;
    live.data(FromGuest);
    let state = live.state().expect("a flow");
    assert_eq!((ruled.rule(), state.underlay), (Some("default"), underlay("dctcp")));
    assert_eq!(state.cc.cwnd_segs, cwnd_segs, "a new law goes on with the window of the old");
    assert_eq!(ruled.shared.rule_totals().expect("totals")[1].connections, 1);
}

#[test]
fn a_flow_that_depends_on_vcc_is_released_and_not_dropped() {
    if !testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let mut live = Ruling::open(&ruled, 40_000);
    for _ in 0..2 {
        live.data(FromGuest);
    }
    let limited = live.send(ToGuest, &live.ends.packet(ToGuest));
    let scale = live.state().map(|f| f.wscale_peer - f.wscale_shown).expect("a flow");
    assert!(scale > 0 && window(&limited) < 502 << scale, "the underlay's window is shown");
    let ends = live.ends;

    for text in ["", "[default]\nmode = \"shadow\"", "[default]\nunderlay = \"transparent\""] {
        ruled.apply(text);
        assert_eq!(ruled.datapath.judge_flows().expect("judged"), 1);
        let mut live = Ruling { ruled: &ruled, ends: Ends::new(ends.shape, 40_000) };
        (live.ends.guest_next, live.ends.peer_next) = (ends.guest_next, ends.peer_next);
        let state = live.state().expect("a flow");
        assert_ne!(state.flags & sys::FLOW_RELEASED, 0, "{text}");
        let mut marked = live.ends.packet(ToGuest);
        (marked.payload, marked.traffic_class) = (payload(MSS_BYTES), CE);
        let shown = live.send(ToGuest, &marked);
        assert_eq!(
            window(&shown),
            502 << scale,
            "the peer's window, as the guest reads it: {text}"
        );
        assert_eq!(ip_ecn(&shown), 0, "the guest did not negotiate it: {text}");
        let mut answer = live.ends.packet(FromGuest);
        answer.payload = payload(MSS_BYTES);
        let frame = live.send(FromGuest, &answer);
        let flags = frame[ETHERNET_BYTES + IPV4_BYTES + 13];
        assert_ne!(u16::from(flags) & ECE, 0, "but the peer did, and is answered: {text}");
        assert_eq!(ip_ecn(&frame), 0, "nobody would reduce for a mark: {text}");
    }
    ruled.apply(ENFORCED);
    assert_eq!(ruled.datapath.judge_flows().expect("judged"), 1);
    let flags = ruled.datapath.flows().expect("flows")[0].state.flags;
    assert_eq!(flags & sys::FLOW_RELEASED, 0, "and under the underlay again");
}

#[test]
fn a_flow_that_does_not_depend_on_vcc_is_let_go() {
    if !testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new("[default]\nmode = \"shadow\"", None);
    let live = Ruling::open(&ruled, 40_000);
    assert!(live.state().is_some());
    ruled.apply("");
    assert_eq!(ruled.datapath.judge_flows().expect("judged"), 1);
    assert!(ruled.datapath.flows().expect("flows").is_empty());
}

#[test]
fn a_handshake_ends_as_it_began() {
    if !testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let mut ends = Ends::new(Shape::plain(FromGuest), 40_000);
    let syn = ends.syn();
    ends.sent(FromGuest, &syn);
    ruled.send(Program::FromGuest, &syn);
    ruled.apply("[default]\nunderlay = \"cubic\"");
    ruled.send(Program::ToGuest, &ends.syn_ack());
    let flows = ruled.datapath.flows().expect("flows");
    assert_eq!(u32::from(flows[0].state.stage), sys::STAGE_ESTABLISHED);
    ends.peer_next += 1;
    ruled.send(Program::FromGuest, &ends.packet(FromGuest));
    assert_eq!(ruled.rule(), Some("default"));
}

/// The peer was promised ECN and the guest knows nothing of it: whatever policies come meanwhile.
#[test]
fn a_handshake_that_outlasts_two_policies_keeps_its_promises() {
    if !testing::can_attach() {
        return;
    }
    for last in ["", "[default]\nmode = \"shadow\"", "[default]\nunderlay = \"cubic\""] {
        let mut ruled = Ruled::new(ENFORCED, None);
        let mut ends = Ends::new(Shape::plain(FromGuest), 40_000);
        let syn = ends.syn();
        ends.sent(FromGuest, &syn);
        ruled.send(Program::FromGuest, &syn);
        for text in ["[default]\nunderlay = \"reno\"", last] {
            ruled.datapath.settle_flows().expect("settled");
            ruled.apply(text);
        }
        ruled.datapath.settle_flows().expect("settled");
        assert_eq!(ruled.rule(), Some("default"), "{last}");
        let mut answer = ends.syn_ack();
        answer.flags |= ECE;
        ends.sent(ToGuest, &answer);
        let shown = ruled.send(Program::ToGuest, &answer);
        let flags = u16::from(shown[ETHERNET_BYTES + IPV4_BYTES + 13]);
        assert_eq!(flags & ECE, 0, "the guest did not ask: {last}");
        let mut marked = ends.packet(ToGuest);
        (marked.payload, marked.traffic_class) = (payload(MSS_BYTES), CE);
        ends.sent(ToGuest, &marked);
        assert_eq!(ip_ecn(&ruled.send(Program::ToGuest, &marked)), 0, "{last}");
        let echo = ruled.send(Program::FromGuest, &ends.packet(FromGuest));
        let flags = u16::from(echo[ETHERNET_BYTES + IPV4_BYTES + 13]);
        assert_ne!(flags & ECE, 0, "the peer's mark is answered: {last}");
    }
}

/// A machine that is slow must not look like a path that loses.
const POOLED: &str = r#"
[[pools]]
name = "p"
window = "200K"
[[rules]]
name = "preferred"
guest_port = 3
pool = "p"
weight = 3
rto_min = "60s"
[[rules]]
name = "others"
pool = "p"
rto_min = "60s"
"#;

/// Half a second of silence is idle; it is looked for every second.
const IDLE: Duration = Duration::from_millis(2600);

/// Two segments of what the guest has sent.
fn acknowledge(flow: &mut Ruling<'_>, acknowledged: &mut u32) {
    let left = flow.ends.guest_next.wrapping_sub(*acknowledged);
    *acknowledged = acknowledged.wrapping_add(left.min(2 * MSS_BYTES as u32));
    let mut ack = flow.ends.packet(ToGuest);
    (ack.ack, ack.window) = (*acknowledged, 0xffff);
    flow.send(ToGuest, &ack);
}

/// Every flow sends all that it may, and a part of what it sent is acknowledged.
fn round(flows: &mut [Ruling<'_>], acknowledged: &mut [u32]) {
    let (ruled, total) = (flows[0].ruled, 200 << 10);
    for (flow, acknowledged) in flows.iter_mut().zip(acknowledged) {
        let state = flow.state().expect("a flow");
        let edge = if state.has(sys::FLOW_WINDOW_SHOWN) {
            state.right_edge
        } else {
            flow.ends.guest_next.wrapping_add(10 * MSS_BYTES as u32)
        };
        while edge.wrapping_sub(flow.ends.guest_next) as i32 >= MSS_BYTES as i32 {
            flow.data(FromGuest);
        }
        acknowledge(flow, acknowledged);
        let used = &ruled.shared.pools().expect("pools")[0];
        assert!(used.held_bytes <= total, "{used:?}");
    }
}

fn shown_bytes(flow: &Ruling<'_>) -> u32 {
    flow.state().expect("a flow").window_shown_bytes()
}

#[test]
fn flows_of_a_pool_share_its_window_by_their_weights() {
    if !testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(POOLED, None);
    let mut flows: Vec<Ruling<'_>> =
        [1u16, 2, 3].into_iter().map(|port| Ruling::open(&ruled, port)).collect();
    let mut acknowledged: Vec<u32> = flows.iter().map(|flow| flow.ends.guest_next).collect();
    let near = |shown: u32, share: f64| {
        let idle_bytes = ruled.shared.pools().expect("pools")[0].idle_bytes;
        let wanted = share * f64::from((200 << 10) - idle_bytes);
        (f64::from(shown) - wanted).abs() <= 2.0 * MSS_BYTES as f64
    };
    // The third has its first window, until it is found to be idle.
    sleep(IDLE);
    for _ in 0..400 {
        round(&mut flows[..2], &mut acknowledged);
    }
    let shown: Vec<u32> = flows[..2].iter().map(shown_bytes).collect();
    assert!(shown.iter().all(|&shown| near(shown, 0.5)), "halves: {shown:?}");

    // Its first data comes a round trip before their acknowledgement; soon enough to be no timeout,
    // which is a second as long as no round trip was measured (RFC 6298, 2.1).
    flows[2].data(FromGuest);
    for _ in 0..40 {
        round(&mut flows[..2], &mut acknowledged);
    }
    for _ in 0..400 {
        round(&mut flows, &mut acknowledged);
    }
    let shown: Vec<u32> = flows.iter().map(shown_bytes).collect();
    assert!(near(shown[0], 0.2) && near(shown[1], 0.2) && near(shown[2], 0.6), "{shown:?}");
    let used = &ruled.shared.pools().expect("pools")[0];
    assert_eq!((used.weight, used.overdrawn), (5, 0));

    // None has anything to send for a while, then the preferred one alone has not.
    for (flow, acknowledged) in flows.iter_mut().zip(&mut acknowledged) {
        while *acknowledged != flow.ends.guest_next {
            acknowledge(flow, acknowledged);
        }
    }
    sleep(IDLE);
    for _ in 0..400 {
        round(&mut flows[..2], &mut acknowledged);
    }
    let shown: Vec<u32> = flows[..2].iter().map(shown_bytes).collect();
    assert!(shown.iter().all(|&shown| near(shown, 0.5)), "all of what the idle one had: {shown:?}");

    // Under the same pool's name the ledger goes on; without it, nothing is left in it.
    drop(flows);
    ruled.apply(&POOLED.replace("weight = 3", "weight = 7"));
    ruled.datapath.judge_flows().expect("judged");
    assert!(ruled.shared.pools().expect("pools")[0].held_bytes > 0);
    ruled.datapath.forget_flows().expect("forgotten");
    let used = &ruled.shared.pools().expect("pools")[0];
    assert_eq!((used.held_bytes, used.idle_bytes, used.weight), (0, 0, 0));
}

#[test]
fn what_was_counted_of_a_flow_stays_its_rules_when_its_ports_are_used_again() {
    if !testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(ENFORCED, None);
    let reopen_by = |ruled: &Ruled| {
        let mut flow = Ruling::open(ruled, 40_000);
        flow.data(FromGuest);
        let mut ack = flow.ends.packet(ToGuest);
        ack.flags |= ECE;
        flow.send(ToGuest, &ack);
        let marks = flow.state().expect("a flow").marks;
        assert_eq!(marks, 1);
        let mut reset = flow.ends.packet(FromGuest);
        reset.flags |= RST;
        flow.send(FromGuest, &reset);
        assert_eq!(u32::from(flow.state().expect("a flow").stage), sys::STAGE_CLOSED);
        flow.ends
    };
    reopen_by(&ruled);
    let closed = reopen_by(&ruled);
    let totals = &ruled.shared.rule_totals().expect("totals")[0];
    assert_eq!((totals.connections, totals.marks), (2, 1), "of the first, which has ended");

    ruled.apply("");
    ruled.send(Program::FromGuest, &Ends::new(closed.shape, 40_000).syn());
    assert!(ruled.datapath.flows().expect("flows").is_empty(), "no rule wants it any more");
}
