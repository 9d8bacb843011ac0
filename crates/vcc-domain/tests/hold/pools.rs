//! Pools at a port with a buffer: what they limit is in the fabric, and their accounts are exact, which the port
//! asserts after each segment.

use std::iter;

use vcc_domain::{BufferSpec, Frame, Out, PoolTotals, Rules};
use vcc_engine::{Limit, Mode, Params, sys};
use vcc_frames::wire::{ACK, FIN, RST};
use vcc_frames::{Packet, options};

use crate::common::rules::{POOLS, by_guest_port};
use crate::common::segment::Segment;
use crate::common::watch::distance;
use crate::ends::{Ends, Guest, MSS_BYTES, holding};
use crate::split::splitting;

const MSS: u32 = MSS_BYTES as u32;
const POOL_BYTES: u32 = 120_000;
const WINDOW_BYTES: u32 = 400_000;
const FORGOTTEN_MS: u64 = 6 * 24 * 3_600_000;

fn showing() -> Params {
    Params(sys::vcc_params { act: sys::ACT_WINDOW as u8, ..holding().0 })
}

fn retransmitting() -> Params {
    Params(sys::vcc_params { retransmit: 1, rto_min_us: 5_000, ..holding().0 })
}

fn acts() -> [Params; 4] {
    [showing(), holding(), retransmitting(), splitting()]
}

fn pooled(params: Params, pool: u16, weight: u16) -> Params {
    Params(sys::vcc_params { pool, pool_weight: weight, pool_bytes: POOL_BYTES, ..params.0 })
}

/// Connections of one guest.
struct Shared {
    guest: Guest,
    all: Vec<Ends>,
    sent: Vec<u32>,
}

impl Shared {
    /// In the first pool, with these weights.
    fn new(params: Params, weights: &[u16]) -> Self {
        Self::with_pool(params, weights, POOL_BYTES)
    }

    fn with_pool(params: Params, weights: &[u16], pool_bytes: u32) -> Self {
        let all = (0..weights.len() as u16).map(Ends::new).collect();
        Self::between(params, all, weights, pool_bytes)
    }

    fn between(params: Params, all: Vec<Ends>, weights: &[u16], pool_bytes: u32) -> Self {
        let mut guest = Guest::with(params, BufferSpec::default());
        // Other rules than hold's are in force for some of them, or will be.
        guest.watch.windows = false;
        guest.watch.splits = true;
        let mut shared = Shared { guest, sent: vec![0; all.len()], all };
        let in_pool = |weight: &u16| {
            let it = pooled(params, 0, *weight);
            Params(sys::vcc_params { pool_bytes, ..it.0 })
        };
        let rules: Vec<Params> = weights.iter().map(in_pool).collect();
        shared.set_rules(&rules);
        shared.all.iter().for_each(|ends| ends.open(&mut shared.guest, 60_000));
        shared
    }

    /// A rule for each connection.
    fn set_rules(&mut self, rules: &[Params]) {
        let first = usize::from(self.all[0].guest.port()) % rules.len();
        let mut by_port = rules.to_vec();
        by_port.rotate_right(first);
        self.guest.port.set_rules(by_guest_port(&by_port));
    }

    /// The guest sends all that its window admits.
    fn send_all(&mut self, which: usize) {
        let Shared { guest, all, sent } = self;
        let edge_bytes = all[which].flow(guest).right_edge.wrapping_sub(all[which].seq(0));
        while sent[which] + MSS <= edge_bytes {
            let _ = guest.send(&all[which].data(sent[which], MSS_BYTES));
            sent[which] += MSS;
        }
    }

    fn acknowledge(&mut self, which: usize) {
        let ends = &mut self.all[which];
        ends.take(&mut self.guest);
        let _ = self.guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    }

    /// Each guest sends what it may, and each peer acknowledges it a round trip later.
    fn round(&mut self, which: impl Iterator<Item = usize> + Clone) {
        which.clone().for_each(|it| self.send_all(it));
        self.guest.wait_ms(5);
        which.for_each(|it| self.acknowledge(it));
    }

    /// All that was sent arrives.
    fn drain(&mut self) {
        while self.all.iter().zip(&self.sent).any(|(ends, sent)| ends.in_sequence < *sent) {
            self.guest.wait_ms(20);
            (0..self.all.len()).for_each(|which| self.acknowledge(which));
        }
    }

    /// What is in the fabric.
    fn flight_bytes(&self, which: usize) -> u32 {
        self.all[which].flow(&self.guest).flight_bytes()
    }

    fn totals(&self, pool: usize) -> PoolTotals {
        let all = self.guest.port.pools().into_iter();
        let mut all = all.filter(|it| it.name == POOLS[pool]).map(|it| it.totals);
        all.next().unwrap_or_default()
    }

    #[track_caller]
    fn assert_empty(&self, pool: usize, when: &str) {
        let PoolTotals { held_bytes, idle_bytes, weight, .. } = self.totals(pool);
        assert_eq!((held_bytes, idle_bytes, weight), (0, 0, 0), "{when}");
    }
}

/// A peer that speaks first, as a client does to a server, does not take the answer's grant.
#[test]
fn a_flow_that_has_not_sent_yet_keeps_what_it_may_send() {
    for params in acts() {
        let [silent, asked] = [false, true].map(|asks| {
            let mut shared = Shared::new(params, &[1, 1]);
            let request =
                Packet { payload: vec![1; 100], ..shared.all[0].peer_ack(0, WINDOW_BYTES) };
            if asks {
                let _ = shared.guest.receive(&request);
            }
            shared.send_all(0);
            shared.flight_bytes(0) / MSS
        });
        assert!(silent > 1 && asked >= silent, "{asked} segments instead of {silent}");
    }
}

#[test]
fn connections_share_the_window_by_weight_and_never_exceed_it() {
    for params in acts() {
        let weights = [1, 1, 3];
        let mut shared = Shared::new(params, &weights);
        let mut sums = [0u32; 3];
        for round in 0..80 {
            shared.round(0..3);
            (0..3).for_each(|which| shared.send_all(which));
            let flights_bytes = [0, 1, 2].map(|which| shared.flight_bytes(which));
            let flight_bytes: u32 = flights_bytes.iter().sum();
            assert!(flight_bytes <= POOL_BYTES, "{flights_bytes:?}");
            assert!(shared.totals(0).held_bytes <= POOL_BYTES);
            if round >= 40 {
                sums.iter_mut().zip(flights_bytes).for_each(|(sum, bytes)| *sum += bytes);
            }
        }
        let act = params.0.act;
        assert_eq!(shared.totals(0).overdrawn, 0, "{act}");
        let total_bytes: u32 = sums.iter().sum();
        assert!(total_bytes > 40 * POOL_BYTES / 10 * 9, "{act}: the pool is used: {sums:?}");
        for (sum, weight) in sums.iter().zip(weights) {
            let fair_bytes = total_bytes / 5 * u32::from(weight);
            assert!(sum.abs_diff(fair_bytes) < fair_bytes / 10, "{act}: {sums:?}");
        }
        let buffered = u32::from(act) != sys::ACT_WINDOW;
        assert_eq!(shared.guest.port.held_bytes() > POOL_BYTES, buffered, "more waits in the port");
    }
}

#[test]
fn a_new_connection_gets_its_share_from_what_others_free() {
    for params in acts() {
        let mut shared = Shared::new(params, &[1, 1]);
        (0..40).for_each(|_| shared.round(0..1));
        shared.send_all(0);
        let alone_bytes = shared.flight_bytes(0);
        assert!(alone_bytes > POOL_BYTES / 10 * 9, "{alone_bytes}");
        (0..40).for_each(|_| shared.round(0..2));
        for which in 0..2 {
            shared.send_all(which);
            let half_bytes = POOL_BYTES / 2;
            assert!(shared.flight_bytes(which).abs_diff(half_bytes) < half_bytes / 10);
        }
        assert_eq!(shared.totals(0).overdrawn, 0);
    }
}

/// The least window of a connection is a segment, even if the pool has nothing left.
#[test]
fn a_pool_without_room_is_overdrawn_by_segments_and_counts_it() {
    for params in acts() {
        let mut shared = Shared::with_pool(params, &[1; 6], 2 * MSS);
        for _ in 0..20 {
            shared.round(0..6);
        }
        (0..6).for_each(|which| shared.send_all(which));
        let flights_bytes: Vec<u32> = (0..6).map(|which| shared.flight_bytes(which)).collect();
        assert!(
            flights_bytes.iter().all(|bytes| (1..=2 * MSS).contains(bytes)),
            "{flights_bytes:?}"
        );
        let PoolTotals { held_bytes, overdrawn, .. } = shared.totals(0);
        assert!(held_bytes > 2 * MSS && overdrawn > 0, "{held_bytes}, {overdrawn}");
    }
}

/// What may leave where nothing is in flight is shown to the guest, too: it sends nothing shorter than a segment.
#[test]
fn a_share_of_less_than_a_segment_shows_a_segment_even_without_a_buffer() {
    for params in [holding(), retransmitting(), splitting()] {
        let mut ends = Ends::new(0);
        let mut guest = Guest::with(params, BufferSpec { size_bytes: 0, ..Default::default() });
        guest.watch.windows = false;
        let pool_bytes = MSS / 2;
        let in_pool = Params(sys::vcc_params { pool_bytes, ..pooled(params, 0, 1).0 });
        guest.port.set_rules(by_guest_port(&[in_pool]));
        ends.open(&mut guest, 60_000);
        let mut sent = 0;
        for round in 0..6 {
            let edge_bytes = ends.flow(&guest).right_edge.wrapping_sub(ends.seq(0));
            assert!(edge_bytes >= sent + MSS, "act {}, round {round}: {edge_bytes}", params.0.act);
            while sent + MSS <= edge_bytes {
                let _ = guest.send(&ends.data(sent, MSS_BYTES));
                sent += MSS;
            }
            while ends.in_sequence < sent {
                guest.wait_ms(5);
                assert!(ends.take(&mut guest), "act {}, round {round}", params.0.act);
                let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
            }
        }
    }
}

/// A connection in all of its states: sending, with data held, idle.
fn busy(params: Params) -> Shared {
    let mut shared = Shared::new(params, &[1, 2, 3]);
    for _ in 0..10 {
        shared.round(0..2);
    }
    (0..2).for_each(|which| shared.send_all(which));
    assert!(shared.totals(0).held_bytes > 0 && shared.totals(0).weight > 0);
    shared
}

#[test]
fn who_is_reset_gives_back_what_he_held() {
    for params in acts() {
        let mut shared = busy(params);
        for which in 0..3 {
            let ack = shared.all[which].guest_ack(shared.sent[which]);
            let _ = shared.guest.send(&Packet { flags: RST | ACK, ..ack });
        }
        shared.assert_empty(0, "all were reset");
    }
}

#[test]
fn who_closes_gives_back_what_he_held() {
    for params in acts() {
        let mut shared = busy(params);
        for which in 0..3 {
            let fin = shared.all[which].guest_ack(shared.sent[which]);
            let _ = shared.guest.send(&Packet { flags: FIN | ACK, ..fin });
            let ends = &mut shared.all[which];
            while ends.take(&mut shared.guest) {
                let acked = ends.in_sequence + u32::from(ends.finished);
                let ack = ends.peer_ack(acked, WINDOW_BYTES);
                let flags = if ends.finished { FIN | ACK } else { ACK };
                let _ = shared.guest.receive(&Packet { flags, ..ack });
            }
            let end = ends.guest_ack(shared.sent[which] + 1);
            let _ = shared.guest.send(&Packet { ack: end.ack.wrapping_add(1), ..end });
        }
        shared.assert_empty(0, "all have closed");
        shared.guest.wait_ms(200_000);
        assert_eq!(shared.guest.port.flows().count(), 0);
        shared.assert_empty(0, "all are forgotten");
    }
}

#[test]
fn a_new_connection_between_the_same_ends_does_not_inherit() {
    for params in acts() {
        let mut shared = busy(params);
        let mut again = Ends::new(0);
        again.iss = again.iss.wrapping_add(1 << 30);
        again.open(&mut shared.guest, 60_000);
        for which in 0..3 {
            let ends = if which == 0 { &again } else { &shared.all[which] };
            let sent = if which == 0 { 0 } else { shared.sent[which] };
            let _ = shared.guest.send(&Packet { flags: RST | ACK, ..ends.guest_ack(sent) });
        }
        shared.assert_empty(0, "the last was reset");
    }
}

#[test]
fn who_is_forgotten_gives_back_what_he_held() {
    for params in acts() {
        let mut shared = busy(params);
        shared.drain();
        shared.guest.wait_ms(FORGOTTEN_MS);
        assert_eq!(shared.guest.port.flows().count(), 0);
        shared.assert_empty(0, "all are forgotten");
        let mut shared = busy(params);
        shared.guest.port.has_gone();
        shared.assert_empty(0, "the guest has moved");
    }
}

/// A repeated SYN with data makes a connection active before it can have a window.
#[test]
fn a_handshake_that_gives_way_is_not_active_any_more() {
    for params in acts() {
        let mut shared = Shared::new(params, &[1]);
        for number in 100..170 {
            let syn = Packet { payload: vec![0; 100], ..Ends::new(number).syn() };
            for _ in 0..2 {
                let _ = shared.guest.send_stray(Frame::full(syn.frame()));
            }
        }
        assert!(shared.guest.port.counters().get(sys::COUNT_GAVE_WAY) > 0);
        let half_open = shared.guest.port.flows().filter(|(_, flow)| flow.is_half_open()).count();
        assert_eq!(shared.totals(0).weight, half_open as u32);
        shared.guest.wait_ms(FORGOTTEN_MS);
        shared.assert_empty(0, "all are forgotten");
    }
}

#[test]
fn what_moves_is_charged_where_it_arrives() {
    for params in acts() {
        let mut shared = busy(params);
        let held_bytes = shared.totals(0).held_bytes;
        let (_, state) = shared.guest.port.hand_over("vcc", iter::empty());
        let mut other = Shared::new(params, &[1, 2, 3]);
        other.guest.port.has_gone();
        other.guest.now_ns = shared.guest.now_ns;
        other.guest.port.take_over(shared.guest.now_ns, &state).expect("a state");
        shared.guest.port.has_gone();
        shared.assert_empty(0, "the guest has moved");
        let PoolTotals { held_bytes: arrived_bytes, most_held_bytes, .. } = other.totals(0);
        assert_eq!(arrived_bytes, held_bytes);
        assert!(most_held_bytes >= held_bytes, "{most_held_bytes} at most");
        other.guest.port.go_on(other.guest.now_ns, &mut Out::default());
        (other.all, other.sent) = (shared.all, shared.sent);
        for _ in 0..20 {
            other.guest.wait_ms(300);
            (0..3).for_each(|which| other.acknowledge(which));
        }
        other.guest.port.has_gone();
        other.assert_empty(0, "the guest has moved again");
    }
}

#[test]
fn idle_connections_keep_what_they_may_send_and_wake_with_it() {
    for params in acts() {
        let mut shared = busy(params);
        shared.drain();
        shared.guest.wait_ms(3000);
        let PoolTotals { held_bytes, idle_bytes, weight, .. } = shared.totals(0);
        assert_eq!((held_bytes, weight), (0, 0));
        assert!(idle_bytes > 0);
        (0..3).for_each(|which| shared.send_all(which));
        let PoolTotals { held_bytes, idle_bytes, weight, .. } = shared.totals(0);
        assert!(held_bytes > 0);
        assert_eq!((idle_bytes, weight), (0, 6));
        for _ in 0..60 {
            shared.round(0..3);
        }
        assert!(shared.totals(0).held_bytes > POOL_BYTES / 10 * 9);
        assert!(shared.totals(0).held_bytes <= POOL_BYTES);
    }
}

#[test]
fn rules_move_connections_out_of_pools_and_into_them() {
    for params in acts() {
        let mut shared = busy(params);
        let without = [params; 3];
        shared.set_rules(&without);
        shared.assert_empty(0, "no rule has a pool");
        for _ in 0..5 {
            shared.round(0..3);
        }
        shared.assert_empty(0, "no rule has a pool");
        shared.set_rules(&[1, 2, 3].map(|weight| pooled(params, 0, weight)));
        for _ in 0..20 {
            shared.round(0..3);
        }
        assert_eq!(shared.totals(0).weight, 6);
        let held_bytes = shared.totals(0).held_bytes;
        assert!((1..=POOL_BYTES).contains(&held_bytes), "{held_bytes}");
        // The weight of one changes, and the pool of another.
        let [first, second, third] =
            [pooled(params, 0, 5), pooled(params, 1, 2), pooled(params, 0, 3)];
        shared.set_rules(&[first, second, third]);
        for _ in 0..20 {
            shared.round(0..3);
        }
        assert_eq!([0, 1].map(|pool| shared.totals(pool).weight), [8, 2]);
        let ignoring = Params(sys::vcc_params { mode: Mode::Ignore.number(), ..showing().0 });
        let shadow = Params(sys::vcc_params { mode: Mode::Shadow.number(), ..second.0 });
        shared.set_rules(&[ignoring, shadow, ignoring]);
        for _ in 0..20 {
            shared.round(0..3);
        }
        [0, 1].into_iter().for_each(|pool| shared.assert_empty(pool, "no rule imposes a window"));
    }
}

/// A handshake keeps its rule for one reload, and no longer.
#[test]
fn a_handshake_leaves_its_pool_when_its_rule_is_gone() {
    let mut shared = Shared::new(holding(), &[1]);
    let syn = Packet { payload: vec![0; 10], ..Ends::new(7).syn() };
    for _ in 0..2 {
        let _ = shared.guest.send(&syn);
    }
    assert_eq!(shared.totals(0).weight, 1);
    shared.set_rules(&[pooled(holding(), 1, 4)]);
    assert_eq!([0, 1].map(|pool| shared.totals(pool).weight), [1, 0]);
    shared.set_rules(&[holding()]);
    [0, 1].into_iter().for_each(|pool| shared.assert_empty(pool, "no rule has a pool"));
}

/// A handshake without data has nothing of its pool yet, whose number must not become another's.
#[test]
fn a_handshake_does_not_charge_a_pool_that_came_after_its_rule() {
    for params in acts() {
        let mut shared = Shared::new(params, &[1]);
        let ends = Ends::new(7);
        let _ = shared.guest.send(&Packet { flags: RST | ACK, ..shared.all[0].guest_ack(0) });
        let _ = shared.guest.send(&ends.syn());
        shared.assert_empty(0, "nothing was shown to either");
        let other =
            || Rules { pools: vec!["third".to_owned()], ..by_guest_port(&[pooled(params, 0, 4)]) };
        shared.guest.port.set_rules(other());
        let _ = shared.guest.receive(&ends.syn_ack(60_000));
        let held_bytes = |shared: &Shared| -> Vec<_> {
            let pools = shared.guest.port.pools().into_iter();
            pools.map(|it| (it.name, it.totals.held_bytes > 0)).collect()
        };
        let [first, third] = [("first".to_owned(), true), ("third".to_owned(), false)];
        assert_eq!(held_bytes(&shared), [first, third], "act {}", params.0.act);
        let _ = shared.guest.send(&ends.data(0, MSS_BYTES));
        assert_eq!(held_bytes(&shared), [("third".to_owned(), true)], "act {}", params.0.act);
        // Nothing is under the first rules any more, so their pools' numbers are free.
        (0..3).for_each(|_| shared.guest.port.set_rules(other()));
        assert_eq!(shared.guest.port.pools().len(), 1);
    }
}

#[test]
fn a_rule_whose_pool_is_not_among_the_names_has_none() {
    let mut shared = Shared::new(holding(), &[1]);
    shared.set_rules(&[pooled(holding(), POOLS.len() as u16, 1)]);
    assert!(shared.guest.port.rules().all(|(rule, _)| rule.params.0.pool_weight == 0));
    (0..3).for_each(|_| shared.round(0..1));
    assert_eq!(shared.guest.port.pools(), []);
}

#[test]
fn another_act_keeps_the_account_exact() {
    for from in acts() {
        for to in acts() {
            let mut shared = busy(from);
            for params in [to, from, to] {
                shared.set_rules(&[1, 2, 3].map(|weight| pooled(params, 0, weight)));
                for _ in 0..20 {
                    shared.round(0..3);
                }
                assert_eq!(shared.totals(0).weight, 6);
            }
            // A guest may send what it was shown, and then no more than the pool admits.
            for _ in 0..80 {
                shared.round(0..3);
            }
            let held_bytes = shared.totals(0).held_bytes;
            assert!((POOL_BYTES / 2..=POOL_BYTES).contains(&held_bytes), "{held_bytes}");
            shared.guest.port.has_gone();
            shared.assert_empty(0, "the guest has moved");
        }
    }
}

/// What is sent again is in flight already, so the pool has been charged for it.
#[test]
fn a_pool_does_not_limit_what_is_sent_again() {
    for params in [retransmitting(), splitting()] {
        let mut ends = Ends::new(0);
        ends.sack = true;
        let mut shared = Shared::between(params, vec![ends], &[1], 24 * MSS);
        (0..20).for_each(|_| shared.round(0..1));
        shared.send_all(0);
        let flight = shared.flight_bytes(0) / MSS;
        assert!((20..=24).contains(&flight), "{flight}");
        let Shared { guest, all, .. } = &mut shared;
        let ends = &all[0];
        assert!(ends.flow(guest).cc.cwnd_segs > flight, "the pool is the limit");
        guest.left.clear();
        guest.wait_ms(5);
        let first = ends.in_sequence;
        let [is_lost, arrived] =
            [0, 1].map(|rest| move |number: &u32| (number % 3 == 0) == (rest == 0));
        for number in (0..flight).filter(arrived) {
            let [from, to] = [number, number + 1].map(|it| ends.seq(first + it * MSS));
            let options = options::join(&[options::sack(&[(from, to)])]);
            let _ = guest.receive(&Packet { options, ..ends.peer_ack(first, WINDOW_BYTES) });
        }
        let lost: Vec<u32> = (0..flight).filter(is_lost).collect();
        let again = guest.left.iter().map(|frame| {
            let segment = Segment::read(&frame.bytes).expect("TCP");
            distance(ends.seq(first), segment.seq) as u32 / MSS
        });
        let again: Vec<u32> = again.filter(|number| *number < flight).collect();
        assert_eq!(again, lost, "act {}, within one round trip", params.0.act);
        let PoolTotals { held_bytes, overdrawn, .. } = shared.totals(0);
        assert!(held_bytes <= 24 * MSS && overdrawn == 0, "{held_bytes}");
    }
}

/// Under `hold`, a window has room for the port's buffer, which no pool gave. One that only receives never uses it.
#[test]
fn what_a_download_was_shown_takes_nothing_from_a_pool_after_hold() {
    for params in [holding(), retransmitting(), splitting()] {
        let mut shared = Shared::new(params, &[1, 1]);
        let round = |shared: &mut Shared| {
            let Shared { guest, all, .. } = shared;
            let ends = &mut all[0];
            // No less than the guest is shown, so that the port need not hold for the peer's sake.
            let data = ends.peer_ack(0, 2 * WINDOW_BYTES);
            let _ = guest.receive(&Packet { payload: vec![7; MSS_BYTES], ..data });
            ends.irs = ends.irs.wrapping_add(MSS);
            let _ = guest.send(&ends.guest_ack(0));
            shared.round(1..2);
        };
        (0..20).for_each(|_| round(&mut shared));
        let shown_bytes = {
            let flow = shared.all[0].flow(&shared.guest);
            flow.right_edge.wrapping_sub(flow.snd_una)
        };
        assert!(shown_bytes > POOL_BYTES, "{shown_bytes}");
        shared.set_rules(&[pooled(showing(), 0, 1), pooled(showing(), 0, 1)]);
        for _ in 0..80 {
            round(&mut shared);
            assert_eq!(shared.totals(0).overdrawn, 0, "from act {}", params.0.act);
        }
        shared.send_all(1);
        let flight_bytes = shared.flight_bytes(1);
        assert!(flight_bytes > POOL_BYTES / 10 * 8, "{flight_bytes}");
        // Once the guest sends, it has its share and no more.
        for _ in 0..80 {
            shared.round(0..2);
            assert!(shared.totals(0).held_bytes <= POOL_BYTES);
        }
        assert_eq!(shared.totals(0).overdrawn, 0, "from act {}", params.0.act);
        (0..2).for_each(|which| shared.send_all(which));
        let flights_bytes = [0, 1].map(|which| shared.flight_bytes(which));
        assert!(flights_bytes.iter().all(|it| *it > POOL_BYTES / 10 * 4), "{flights_bytes:?}");
    }
}

/// What the guest may send at once is a handshake's result already.
#[test]
fn the_pool_limits_the_first_window() {
    for params in acts() {
        let mut shared = Shared::new(params, &[1; 20]);
        for which in 0..20 {
            shared.send_all(which);
        }
        let least_bytes = 20 * 2 * MSS;
        let PoolTotals { most_held_bytes, .. } = shared.totals(0);
        assert!(most_held_bytes <= POOL_BYTES + least_bytes, "{most_held_bytes}");
        for which in 0..20 {
            assert!(shared.flight_bytes(which) <= POOL_BYTES / 16 + MSS);
        }
    }
}

/// The guest is shown the room of the buffer, which is not what limits it.
#[test]
fn a_pool_that_binds_is_the_limit_that_is_reported() {
    for params in [holding(), splitting()] {
        let mut shared = Shared::between(params, vec![Ends::new(0)], &[1], 24 * MSS);
        (0..20).for_each(|_| shared.round(0..1));
        shared.send_all(0);
        let (guest, seen) = (&shared.guest, shared.guest.port.seen().next().expect("a flow"));
        let (rule, _) = guest.port.rules().next().expect("a rule");
        let now_us = guest.now_ns / 1000;
        let limit = seen.state.limited_by(&rule.params, Some(seen.share.leaving_bytes), now_us);
        let Limit::Pool { share_bytes, pool_bytes, weight } = limit else { panic!("{limit:?}") };
        assert_eq!((share_bytes, pool_bytes, weight), (24 * MSS, 24 * MSS, 1));
    }
}
