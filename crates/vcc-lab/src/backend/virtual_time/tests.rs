//! Whole runs with guests that share a core, or whose cards interrupt at different intervals. They
//! need what the guests' kernel is built with.

use super::*;
use crate::scenario::{Core, Flow, Guest, Limits, Scheduler, Share, Translation, Vcpu, made};
use std::iter;
use std::ops::RangeInclusive;
use vcc_domain::BufferSpec;
use vcc_engine::{Act, Params, Underlay, sys};
use vcc_fabric::TopologyKind;
use vcc_testing::can_attach;
use vcc_traffic::requests::{Call, Kind};
use vcc_traffic::{Connections, Pattern, Requests, Transfer, Transfers, Until};

const SLICE_NS: u64 = 30_000_000;
/// As many as a verdict on the driver domain takes: some waits come with one seed of ten.
const SEEDS: RangeInclusive<u64> = 1..=10;
const CREDIT: Scheduler = Scheduler::Credit { slice_ns: SLICE_NS, spare_cores: 1 };
const ROUND_ROBIN: Scheduler = Scheduler::RoundRobin { slice_ns: SLICE_NS };

fn share(percent: u32) -> Share {
    Share { percent, period_ns: SLICE_NS }
}

/// A core on which a number of virtual machines run besides a guest; each computes `percent` of the time.
fn core(scheduler: Scheduler, others: usize, percent: u32) -> Core {
    let background = vec![share(percent); others];
    Core { scheduler, background, wakeup_ns: 0, driver_ns: None }
}

/// One guest and its receiver, 1 Gbit/s.
fn scenario(pattern: Pattern, cores: Vec<Core>) -> Scenario {
    let mut scenario = made::scenario();
    scenario.network.rate_bps = 1_000_000_000;
    scenario.network.edge_rate_bps = 1_000_000_000;
    scenario.network.delay_ns = 25_000;
    scenario.flows[0].pattern = pattern;
    scenario.warm_up_ns = 300_000_000;
    scenario.measured_ns = 1_500_000_000;
    scenario.cores = cores;
    scenario
}

fn run(scenario: &Scenario, seed: u64) -> RunData {
    let kernel = prepare().unwrap_or_else(|error| panic!("{error}"));
    run_once(&kernel, scenario, seed, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn hash(data: &RunData) -> &str {
    &data.frame_log.as_ref().expect("a frame log").hash
}

/// PVTCP, equation 5: a request to a guest that computes, as N - 1 others of its core do, waits for
/// up to N - 1 slices, and at times not at all.
#[test]
fn answers_of_a_guest_that_shares_its_core_wait_for_the_others_slices() {
    if !can_attach() {
        return;
    }
    for (scheduler, others) in [(CREDIT, 0), (CREDIT, 2), (ROUND_ROBIN, 1)] {
        let mut scenario = scenario(Pattern::PingPong, vec![core(scheduler, others, 100)]);
        scenario.receivers.vcpu = Some(Vcpu { core: 0, load: share(100) });
        let data = run(&scenario, 1);
        let took_ns = data.flows[0].responses.iter().map(|response| response.took_ns);
        let (least_ns, most_ns) = (took_ns.clone().min(), took_ns.max());
        let (least_ns, most_ns) = (least_ns.expect("answers"), most_ns.expect("answers"));
        assert!((100_000..200_000).contains(&least_ns), "{least_ns}");
        let bound_ns = others as u64 * SLICE_NS;
        let most_expected_ns = bound_ns + least_ns + INTERRUPT_EVERY_NS;
        let longest = bound_ns.saturating_sub(SLICE_NS / 3)..=most_expected_ns;
        assert!(longest.contains(&most_ns), "{scheduler:?} {others}: {most_ns}");
        assert_eq!(hash(&data), hash(&run(&scenario, 1)));
        if others > 0 {
            assert_ne!(hash(&data), hash(&run(&scenario, 2)));
        }
    }
}

/// Xen's boost: a guest that sleeps until it is asked need not wait for those that compute.
#[test]
fn a_guest_that_does_not_compute_is_boosted() {
    if !can_attach() {
        return;
    }
    let longest_ns = |scheduler| {
        let mut scenario = scenario(Pattern::PingPong, vec![core(scheduler, 2, 100)]);
        scenario.receivers.vcpu = Some(Vcpu { core: 0, load: share(0) });
        let data = run(&scenario, 1);
        let took_ns = data.flows[0].responses.iter().map(|response| response.took_ns);
        took_ns.max().expect("answers")
    };
    assert!(longest_ns(CREDIT) < 1_000_000);
    assert!(longest_ns(ROUND_ROBIN) > SLICE_NS);
}

/// vFlood, 2.1: an acknowledgement finds the sender waiting for its core, so that each round trip
/// takes a turn of all others.
#[test]
fn transfers_of_a_sender_that_shares_its_core_take_many_times_as_long() {
    if !can_attach() {
        return;
    }
    let (bytes, count) = (102_400.try_into().unwrap(), 3.try_into().unwrap());
    let pattern =
        Pattern::Transfers(Transfers { bytes, count, every_ms: None, until: Until::Received });
    let undisturbed = run(&scenario(pattern, Vec::new()), 1);
    let mut scenario = scenario(pattern, vec![core(ROUND_ROBIN, 2, 60)]);
    scenario.guests[0].vcpu = Some(Vcpu { core: 0, load: share(0) });
    let disturbed = run(&scenario, 1);
    let took_ns = |data: &RunData| -> Vec<u64> {
        assert!(data.flows[0].payload_ok);
        data.flows[0].transfers.iter().map(|transfer: &Transfer| transfer.took_ns).collect()
    };
    let (fast_ns, slow_ns) = (took_ns(&undisturbed), took_ns(&disturbed));
    assert_eq!((fast_ns.len(), slow_ns.len()), (3, 3));
    scenario.guests[0].small_queues = false;
    scenario.cores[0].wakeup_ns = 5_000;
    let unheld = run(&scenario, 1);
    let turns_ns = took_ns(&unheld);
    // 71 full frames take 0.86 ms alone.
    assert!(fast_ns.iter().all(|ns| (860_000..3_000_000).contains(ns)), "{fast_ns:?}");
    // TCP small queues: two buffers of two segments leave in a turn, because a guest that sleeps
    // learns in its next turn that they have left. 71 segments take 18 turns of 18 ms.
    assert!(slow_ns.iter().all(|ns| *ns > 300_000_000), "{slow_ns:?}");
    // Without, a turn for the handshake, and for 10, 20 and 40 segments.
    assert!(turns_ns.iter().all(|ns| (54_000_000..=73_000_000).contains(ns)), "{turns_ns:?}");
    assert_eq!(hash(&unheld), hash(&run(&scenario, 1)));
    // 3, 6, 12, 24 and 26 segments.
    scenario.guests[0].limits.initial_segs = Some(3);
    let small_ns = took_ns(&run(&scenario, 1));
    assert!(small_ns.iter().all(|ns| (90_000_000..=109_000_000).contains(ns)), "{small_ns:?}");
    // 10 segments each time.
    scenario.guests[0].limits = Limits { cwnd_segs: Some(10), ..Limits::default() };
    let clamped_ns = took_ns(&run(&scenario, 1));
    assert!(clamped_ns.iter().all(|ns| (126_000_000..=145_000_000).contains(ns)), "{clamped_ns:?}");
    scenario.guests[0].limits = Limits::default();
    // What the receiver's first window takes, and the rest.
    scenario.guests[0].congestion_control = "flood".into();
    let flood_ns = took_ns(&run(&scenario, 1));
    assert!(flood_ns.iter().all(|ns| (18_000_000..=37_000_000).contains(ns)), "{flood_ns:?}");
}

/// vFlood, 3.1. On a path without loss the guest's window is always the one online.
#[test]
fn a_flooding_guest_has_a_window_of_512_segments() {
    const FLOOD_CWND_SEGS: u32 = 512;
    if !can_attach() {
        return;
    }
    let mut scenario = scenario(Pattern::Bulk, Vec::new());
    scenario.warm_up_ns = 20_000_000;
    scenario.measured_ns = 20_000_000;
    scenario.window_every_us = Some(1_000);
    let windows = |scenario: &Scenario| -> Vec<u32> {
        let data = run(scenario, 1);
        assert!(data.flows[0].payload_ok);
        data.flows[0].samples.iter().map(|sample| sample.cwnd_segs).collect()
    };
    scenario.guests[0].congestion_control = "flood".into();
    let flood_segs = windows(&scenario);
    assert_eq!(flood_segs, vec![FLOOD_CWND_SEGS; flood_segs.len()]);
    assert!(flood_segs.len() > 10);
    scenario.guests[0].limits.cwnd_segs = Some(100);
    assert!(windows(&scenario).iter().all(|segs| *segs == 100));
}

/// A client asks for pages at a server whose file store shares its core. The client and the server
/// have cores of their own.
#[test]
fn requests_wait_for_a_tier_that_shares_its_core() {
    const IMAGES: u32 = 2;
    if !can_attach() {
        return;
    }
    let mut scenario = scenario(Pattern::Idle, vec![core(ROUND_ROBIN, 1, 30)]);
    scenario.measured_ns = 500_000_000;
    scenario.network.topology = TopologyKind::Mesh;
    scenario.network.guests = 3;
    scenario.guests = vec![made::guest(), made::guest(), made::guest()];
    let kind = |response_bytes, calls| Kind { request_bytes: 200, response_bytes, calls };
    let images = Call { kind: 1, group: 1, count: IMAGES, at_once: 1 };
    scenario.requests = vec![kind(10_000, vec![images]), kind(20_000, Vec::new())];
    let flow = |group, sender, connections, asks: &[(usize, u32)]| {
        let timeout_ms = 100.try_into().unwrap();
        let pattern =
            Pattern::Requests(Requests { connections, think_ms: 0, strobe: false, timeout_ms });
        Flow { group, sender, receiver: sender + 1, pattern, asks: asks.to_vec(), ..made::flow() }
    };
    scenario.flows =
        vec![flow(0, 0, Connections::Persistent, &[(0, 1)]), flow(1, 1, Connections::New, &[])];
    let answered = |data: &RunData| {
        assert!(data.flows.iter().all(|flow| flow.payload_ok));
        let [pages, images] = [0, 1].map(|flow| data.flows[flow].answered);
        assert!(images.abs_diff(pages * u64::from(IMAGES)) <= 2 * u64::from(IMAGES));
        pages
    };
    let alone = answered(&run(&scenario, 1));
    scenario.guests[2].vcpu = Some(Vcpu { core: 0, load: share(0) });
    let data = run(&scenario, 1);
    let shared = answered(&data);
    // While the other computes, 30 % of the time, there are no images.
    assert!((alone * 6 / 10..alone * 8 / 10).contains(&shared), "{alone} {shared}");
    let longest_ns = data.flows[0].responses.iter().map(|response| response.took_ns).max();
    assert!((9_000_000..11_000_000).contains(&longest_ns.unwrap()), "{longest_ns:?}");
    assert_eq!(hash(&data), hash(&run(&scenario, 1)));
}

/// A client that asks two servers at once, 100 KB of each, 1 Gbit/s.
fn strobe(cores: Vec<Core>) -> Scenario {
    let mut scenario = scenario(Pattern::Idle, cores);
    scenario.network.topology = TopologyKind::Mesh;
    scenario.network.guests = 3;
    scenario.guests = vec![made::guest(), made::guest(), made::guest()];
    scenario.requests =
        vec![Kind { request_bytes: 100, response_bytes: 100_000, calls: Vec::new() }];
    let flow = |receiver| {
        let (connections, timeout_ms) = (Connections::Persistent, 1_000.try_into().unwrap());
        let requests = Requests { connections, think_ms: 0, strobe: true, timeout_ms };
        let (pattern, asks) = (Pattern::Requests(requests), vec![(0, 1)]);
        Flow { sender: 0, receiver, pattern, asks, ..made::flow() }
    };
    scenario.flows = vec![flow(1), flow(2)];
    scenario
}

/// A server on a core of its own answers as often as the server that has to wait for its core.
#[test]
fn a_strobe_asks_again_when_all_have_answered() {
    if !can_attach() {
        return;
    }
    let mut scenario = strobe(vec![core(ROUND_ROBIN, 1, 50)]);
    scenario.measured_ns = 500_000_000;
    let answered = |data: &RunData| {
        assert!(data.flows.iter().all(|flow| flow.payload_ok));
        let [first, second] = [0, 1].map(|flow| &data.flows[flow]);
        assert!(first.answered.abs_diff(second.answered) <= 1);
        assert!(first.received_bytes().abs_diff(first.answered * 100_008) <= 100_008);
        first.answered
    };
    let alone = answered(&run(&scenario, 1));
    // Two blocks take 1.7 ms at the rate of the client's link.
    assert!((200..300).contains(&alone), "{alone}");
    scenario.guests[2].vcpu = Some(Vcpu { core: 0, load: share(0) });
    let data = run(&scenario, 1);
    let shared = answered(&data);
    assert!(shared < alone * 3 / 4, "{shared} {alone}");
    assert_eq!(hash(&data), hash(&run(&scenario, 1)));
}

/// A port that acknowledges what it holds, with NewReno.
fn split() -> Translation {
    let act = Act::Split.number();
    let underlay = "reno".parse::<Underlay>().expect("an underlay").number();
    let params =
        Params(sys::vcc_params { act, underlay, rto_min_us: 1_000, ..Params::default().0 });
    Translation { params, share: None, buffer: BufferSpec::default() }
}

/// The durations of three transfers of 100 KB, one after another, with a core that two others use too.
fn transfers_ns(change: impl Fn(&mut Scenario), until: Until, seed: u64) -> Vec<u64> {
    let (bytes, count) = (102_400.try_into().unwrap(), 3.try_into().unwrap());
    let pattern = Pattern::Transfers(Transfers { bytes, count, every_ms: None, until });
    let mut scenario = scenario(pattern, vec![core(ROUND_ROBIN, 2, 60)]);
    scenario.cores[0].wakeup_ns = 5_000;
    scenario.guests[0].ecn = false;
    scenario.measured_ns = 500_000_000;
    change(&mut scenario);
    let data = run(&scenario, seed);
    let took_ns: Vec<u64> = data.flows[0].transfers.iter().map(|it| it.took_ns).collect();
    assert_eq!(took_ns.len(), 3, "with seed {seed}");
    took_ns
}

/// The port has copied the frames that it takes, so a sender learns while it runs that its buffers have left.
/// The first transfer finds the driver's byte queue limit where it begins.
#[test]
fn no_transfer_waits_for_news_of_its_buffers_under_split() {
    if !can_attach() {
        return;
    }
    let shared = |scenario: &mut Scenario| {
        scenario.guests[0].vcpu = Some(Vcpu { core: 0, load: share(0) });
        scenario.guests[0].translation = Some(split());
    };
    for seed in SEEDS {
        let took_ns = transfers_ns(shared, Until::Received, seed);
        // A turn for the handshake.
        let is_one_turn = |ns: &u64| (18_000_000..=37_000_000).contains(ns);
        assert!(took_ns.iter().all(is_one_turn), "{took_ns:?} with seed {seed}");
    }
}

/// The port acknowledges for a receiver that waits for its core: of its turns only that for the handshake is
/// left, and that in which it opens its window.
#[test]
fn no_transfer_waits_for_turns_of_its_receiver_under_snoop() {
    if !can_attach() {
        return;
    }
    let shared = |scenario: &mut Scenario| {
        scenario.receivers.vcpu = Some(Vcpu { core: 0, load: share(0) });
    };
    let snooped = |scenario: &mut Scenario| {
        shared(scenario);
        let act = Act::Window.number();
        let params =
            Params(sys::vcc_params { receive: sys::RECEIVE_RING as u8, act, ..split().params.0 });
        scenario.receivers.translation = Some(Translation { params, ..split() });
    };
    for seed in SEEDS {
        // The first one begins at any time of the others' turns.
        let later_ns = &transfers_ns(snooped, Until::Acknowledged, seed)[1..];
        let is_two_turns = |ns: &u64| (36_000_000..=37_000_000).contains(ns);
        assert!(later_ns.iter().all(is_two_turns), "{later_ns:?} with seed {seed}");
    }
    let later_ns = &transfers_ns(shared, Until::Acknowledged, 1)[1..];
    assert!(later_ns.iter().all(|ns| *ns >= 90_000_000), "{later_ns:?} without");
}

/// Twenty servers answer a client at once, for the first time, through a queue of 100 KB. With some
/// seeds nothing of a first flight arrives, and a server without a sample of the RTT then waited for
/// a second, as did the others, which the client asks again when all have answered.
#[test]
fn first_answers_that_meet_at_a_queue_wait_for_no_second_under_split() {
    const SERVERS: usize = 20;
    if !can_attach() {
        return;
    }
    let server = || Guest { ecn: false, translation: Some(split()), ..made::guest() };
    let mut scenario = strobe(Vec::new());
    scenario.network.guests = SERVERS + 1;
    scenario.network.delay_ns = 150_000;
    scenario.network.queue =
        toml::from_str("kind = 'tail-drop'\nlimit_bytes = 100_000").expect("a queue");
    scenario.guests =
        iter::once(made::guest()).chain(iter::repeat_with(server).take(SERVERS)).collect();
    let asked = scenario.flows[0].clone();
    scenario.flows = (1..=SERVERS).map(|receiver| Flow { receiver, ..asked.clone() }).collect();
    scenario.measured_ns = 200_000_000;
    for seed in [3, 7, 13] {
        let data = run(&scenario, seed);
        assert!(data.flows.iter().all(|flow| flow.payload_ok));
        // The link carries 240 blocks in this time.
        let answered: u64 = data.flows.iter().map(|flow| flow.answered).sum();
        assert!(answered >= 120, "{answered} with seed {seed}");
    }
}

/// PVTCP, 5.A.1 and 7: a server mistakes its own absence for a loss, unless it notices its absence.
#[test]
fn a_stalled_server_times_out_but_with_pvtcp() {
    if !can_attach() {
        return;
    }
    let mut scenario = strobe(vec![core(CREDIT, 2, 100)]);
    scenario.guests[2].vcpu = Some(Vcpu { core: 0, load: share(100) });
    let counts = |scenario: &Scenario| {
        let data = run(scenario, 1);
        assert!(data.flows.iter().all(|flow| flow.payload_ok));
        assert!(data.emulator.links.iter().all(|link| link.counters.drops_full == 0));
        ["TCPTimeouts", "TCPPVStalls", "TCPPVTimers", "TCPPVSamples"]
            .map(|name| data.tcp[&2].get(name))
    };
    assert_eq!(counts(&scenario), [0; 4], "the usual least timeout is longer than any absence");
    scenario.guests[2].limits.rto_min_ms = Some(1);
    scenario.guests[2].tcp.tail_loss_probes = Some(false);
    let [timeouts, rest @ ..] = counts(&scenario);
    assert!(timeouts >= 5, "{timeouts}");
    assert_eq!(rest, [0; 3]);
    scenario.guests[2].tcp.pvtcp = Some(true);
    let [spared, stalls, postponed, samples] = counts(&scenario);
    assert!(spared <= timeouts / 5, "{spared} of {timeouts}");
    assert!(
        stalls >= postponed && postponed >= 5 && samples >= 5,
        "{stalls} {postponed} {samples}"
    );
}

/// RFC 5681, 4.1: an absence longer than a small RTO would pass for idle time, after which a server
/// restarts from its initial window. Here that takes two more round trips of 4 ms in each turn.
#[test]
fn an_absence_is_no_idle_time_with_pvtcp() {
    if !can_attach() {
        return;
    }
    let mut scenario = strobe(vec![core(CREDIT, 2, 100)]);
    scenario.network.delay_ns = 1_000_000;
    scenario.guests[2].vcpu = Some(Vcpu { core: 0, load: share(100) });
    let shared = scenario.flows.remove(1);
    scenario.flows = vec![Flow { group: 0, ..shared }];
    let answered = |scenario: &Scenario| {
        let data = run(scenario, 1);
        assert!(data.flows[0].payload_ok);
        (data.flows[0].answered, data.tcp[&2].get("TCPPVStalls"))
    };
    // The usual RTO is longer than any absence.
    let (usual, none) = answered(&scenario);
    scenario.guests[2].limits.rto_min_ms = Some(1);
    scenario.guests[2].tcp.tail_loss_probes = Some(false);
    scenario.guests[2].tcp.pvtcp = Some(true);
    let (small, stalls) = answered(&scenario);
    assert!(none == 0 && stalls >= 10 && usual >= 100, "{none} {stalls} {usual}");
    assert!(small * 20 >= usual * 19, "{small} {usual}");
}

/// A bulk flow's frames come so close that a card set to interrupt for each of them makes another
/// run; a card set to the usual interval makes the same run.
#[test]
fn a_card_interrupts_as_often_as_it_is_asked_to() {
    if !can_attach() {
        return;
    }
    let hash_at = |guests_ns, receivers_ns| {
        let mut scenario = scenario(Pattern::Bulk, Vec::new());
        scenario.warm_up_ns = 20_000_000;
        scenario.measured_ns = 20_000_000;
        scenario.guests[0].interrupt_every_ns = guests_ns;
        scenario.receivers.interrupt_every_ns = receivers_ns;
        hash(&run(&scenario, 1)).to_owned()
    };
    let (usual, usual_ns) = (hash_at(None, None), Some(INTERRUPT_EVERY_NS));
    assert_eq!(usual, hash_at(usual_ns, usual_ns));
    assert_ne!(usual, hash_at(Some(0), None));
    assert_ne!(usual, hash_at(None, Some(0)));
}
