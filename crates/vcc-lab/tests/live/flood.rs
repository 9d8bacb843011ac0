//! vFlood's guest: 512 segments online, and NewReno's window from a loss or mark until its repair.

use std::fs;
use std::time::Duration;

use crate::wire::{
    AtSender, CA_CWR, CA_LOSS, CA_OPEN, CA_RECOVERY, CWR, Connection, ECN_NEGOTIATED, Fate, Link,
    MSS_BYTES, State, Wire,
};

const FLOOD_CWND_SEGS: u32 = 512;
const INITIAL_SEGS: u32 = 10;

/// `struct flood` of guest/flood.h, at the start of the connection's state.
struct Law {
    cwnd_segs: u32,
    ssthresh_segs: u32,
    prr_delivered_segs: u32,
}

fn law(state: &State) -> Law {
    let words = &state.ca_priv;
    Law { cwnd_segs: words[0], ssthresh_segs: words[2], prr_delivered_segs: words[5] }
}

fn is_online(state: &State) -> bool {
    state.ca_state < CA_CWR
}

#[track_caller]
fn with_connection(test: impl FnOnce(Wire, Connection) + Send) {
    crate::with_connection("flood", "reno", Link::default(), test);
}

/// What passed the sender during its first reduction, with the state before and after.
struct Episode {
    before: State,
    first: State,
    after: State,
    sent: u32,
}

fn episode(seen: &[AtSender]) -> Episode {
    let mut states = seen.iter().enumerate().filter_map(|(place, it)| match it {
        AtSender::Got(_, state) => state.map(|state| (place, state)),
        AtSender::Sent(_) => None,
    });
    let (_, mut before) = states.next().expect("an ACK");
    let reduction = states.find_map(|(place, state)| {
        if is_online(&state) {
            before = state;
        }
        (!is_online(&state)).then_some((place, state))
    });
    let (begin, first) = reduction.expect("a reduction");
    let (end, after) = states.find(|(_, state)| is_online(state)).expect("its end");
    let within = &seen[begin..end];
    let is_data =
        |it: &&AtSender| matches!(it, AtSender::Sent(segment) if segment.payload_bytes() > 0);
    let sent = within.iter().filter(is_data).count() as u32;
    Episode { before, first, after, sent }
}

/// The greatest flight.
fn most_in_flight_segs(seen: &[AtSender]) -> u32 {
    let (mut una, mut end, mut most_bytes) = (None, None, 0);
    for it in seen {
        match it {
            AtSender::Sent(segment) if segment.payload_bytes() > 0 => {
                una = una.or(Some(segment.seq()));
                end = Some(segment.seq().wrapping_add(segment.payload_bytes()));
            }
            AtSender::Got(ack, _) => una = una.map(|_| ack.ack()),
            AtSender::Sent(_) => {}
        }
        if let (Some(una), Some(end)) = (una, end) {
            most_bytes = most_bytes.max(u32::wrapping_sub(end, una) as i32);
        }
    }
    most_bytes as u32 / MSS_BYTES as u32
}

#[test]
fn the_window_is_512_from_the_first_segment_on() {
    with_connection(|mut wire, mut connection| {
        let state = connection.state();
        assert_eq!((state.cwnd_segs, law(&state).cwnd_segs), (FLOOD_CWND_SEGS, INITIAL_SEGS));
        // The receiver's first window is smaller than the flood.
        wire.send(&mut connection, 3_000 * MSS_BYTES, |_, _| Fate::Passes);
        let seen = wire.take_at_sender();
        assert_eq!(most_in_flight_segs(&seen), FLOOD_CWND_SEGS);
        let first = seen
            .iter()
            .position(|it| matches!(it, AtSender::Got(ack, Some(_)) if ack.payload_bytes() == 0));
        let sent = seen[..first.expect("an ACK")].iter();
        let sent = sent.filter(|it| matches!(it, AtSender::Sent(it) if it.payload_bytes() > 0));
        assert!(sent.count() as u32 > 2 * INITIAL_SEGS);
    });
}

/// Neither a pause (RFC 5681, 4.1) nor a sender that does not use its window (RFC 7661) reduces it.
#[test]
fn an_idle_sender_keeps_its_window() {
    const BEYOND_RTO: Duration = Duration::from_millis(2_200);
    with_connection(|mut wire, mut connection| {
        wire.send(&mut connection, 600 * MSS_BYTES, |_, _| Fate::Passes);
        let used_segs = law(&connection.state()).cwnd_segs;
        for _ in 0..2 {
            wire.idle(&mut connection, BEYOND_RTO);
            assert_eq!(connection.state().cwnd_segs, FLOOD_CWND_SEGS);
            wire.send(&mut connection, MSS_BYTES, |_, _| Fate::Passes);
            assert_eq!(connection.state().cwnd_segs, FLOOD_CWND_SEGS);
        }
        let idle_segs = law(&connection.state()).cwnd_segs;
        assert!(idle_segs < used_segs / 2, "NewReno's: {used_segs}, {idle_segs}");
    });
}

#[test]
fn fast_recovery_is_newrenos() {
    const LOST: u32 = 20;
    with_connection(|mut wire, mut connection| {
        wire.send(&mut connection, 2_000 * MSS_BYTES, |number, _| {
            if number == LOST { Fate::IsLost } else { Fate::Passes }
        });
        let Episode { before, first, after, sent } = episode(&wire.take_at_sender());
        let cwnd_segs = law(&before).cwnd_segs;
        assert!((INITIAL_SEGS..FLOOD_CWND_SEGS).contains(&cwnd_segs), "{cwnd_segs}");
        assert_eq!((first.ca_state, first.ssthresh_segs), (CA_RECOVERY, cwnd_segs / 2));
        // PRR: half of what is delivered, so that a flood of 512 segments ends.
        let delivered_segs = law(&after).prr_delivered_segs;
        // The state is read a little later than what it is of, where the machine is busy.
        let off_segs = sent.abs_diff(delivered_segs / 2);
        assert!(
            delivered_segs > 100 && off_segs <= 2 + delivered_segs / 20,
            "{sent} for {delivered_segs}"
        );
        assert_eq!((after.ca_state, after.cwnd_segs), (CA_OPEN, FLOOD_CWND_SEGS));
        assert!((cwnd_segs / 2..=cwnd_segs / 2 + 2).contains(&law(&after).cwnd_segs));
        assert_eq!(law(&after).ssthresh_segs, cwnd_segs / 2);
        assert_eq!(connection.state().cwnd_segs, FLOOD_CWND_SEGS);
    });
}

#[test]
fn after_a_timeout_newreno_starts_slowly() {
    const FLIGHT: u32 = 40;
    const BEYOND_DELAYED_ACK: Duration = Duration::from_millis(300);
    with_connection(|mut wire, mut connection| {
        wire.send(&mut connection, 100 * MSS_BYTES, |_, _| Fate::Passes);
        wire.idle(&mut connection, BEYOND_DELAYED_ACK);
        let before = law(&connection.state());
        wire.take_at_sender();
        wire.send(&mut connection, FLIGHT as usize * MSS_BYTES, |number, _| {
            if number < 100 + FLIGHT { Fate::IsLost } else { Fate::Passes }
        });
        let Episode { first, after, sent, .. } = episode(&wire.take_at_sender());
        assert_eq!((first.ca_state, first.ssthresh_segs), (CA_LOSS, before.cwnd_segs / 2));
        assert!(first.cwnd_segs <= 3, "{first:?}");
        assert_eq!(first.cwnd_segs, law(&first).cwnd_segs);
        assert!(sent > FLIGHT / 2, "{sent}");
        assert_eq!((after.ca_state, after.cwnd_segs), (CA_OPEN, FLOOD_CWND_SEGS));
        // From the loss window, a segment for each that is delivered (RFC 5681, 3.1).
        assert!((FLIGHT / 2..=1 + FLIGHT).contains(&law(&after).cwnd_segs), "{after:?}");
    });
}

/// RFC 3168, 6.1.2: a mark halves the window once per window of data, and CWR reports it.
#[test]
fn a_mark_that_reaches_the_guest_halves_newrenos_window() {
    const MARKED: u32 = 20;
    with_connection(|mut wire, _| {
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("tcp_ecn");
        let mut connection = wire.connect("flood", "reno");
        assert_eq!(connection.state().ecn_flags & ECN_NEGOTIATED, ECN_NEGOTIATED);
        wire.take_at_sender();
        wire.send(&mut connection, 1_000 * MSS_BYTES, |number, _| {
            if number == MARKED { Fate::IsMarked } else { Fate::Passes }
        });
        let seen = wire.take_at_sender();
        let Episode { before, first, after, .. } = episode(&seen);
        let halved_segs = law(&before).cwnd_segs / 2;
        assert_eq!((first.ca_state, first.ssthresh_segs), (CA_CWR, halved_segs));
        assert_eq!((after.ca_state, after.cwnd_segs), (CA_OPEN, FLOOD_CWND_SEGS));
        assert_eq!(law(&after).ssthresh_segs, halved_segs);
        let says_cwr = |it: &&AtSender| matches!(it, AtSender::Sent(segment) if segment.is(CWR));
        assert_eq!(seen.iter().filter(says_cwr).count(), 1);
    });
}
