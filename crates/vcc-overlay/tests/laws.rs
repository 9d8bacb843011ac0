//! Ideal senders through a path with a queue, and the guess about each.

use vcc_overlay::{Class, Guess, Observation, Watch};

const MSS_BYTES: u32 = 1448;

/// Event of a round trip.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Nothing,
    Loss,
    Mark,
}

/// The next round trip's window in segments, given the last one and the time.
trait Law {
    fn next(&mut self, segs: f64, sign: Sign, at_s: f64) -> f64;
}

impl<F: FnMut(f64, Sign, f64) -> f64> Law for F {
    fn next(&mut self, segs: f64, sign: Sign, at_s: f64) -> f64 {
        self(segs, sign, at_s)
    }
}

struct Path {
    base_us: u64,
    /// Window without a queue, and with a full queue.
    bdp_segs: f64,
    room_segs: f64,
    /// The queue marks and never drops.
    marks: bool,
    shown_segs: u32,
}

const PATH: Path =
    Path { base_us: 10_000, bdp_segs: 60.0, room_segs: 100.0, marks: false, shown_segs: 4000 };

/// Ten looks per round trip.
fn guess(path: &Path, rounds: u32, mut law: impl Law) -> Guess {
    let mut watch = Watch::default();
    let (mut at_us, mut una) = (0, u32::MAX - 100_000);
    let (mut segs, mut retransmissions, mut cwrs) = (10.0_f64, 0, 0);
    for _ in 0..rounds {
        let rtt_us = (path.base_us as f64 * (segs / path.bdp_segs).max(1.0)) as u64;
        let sign = match segs > path.room_segs {
            false => Sign::Nothing,
            true if path.marks => Sign::Mark,
            true => Sign::Loss,
        };
        retransmissions += u32::from(sign == Sign::Loss);
        cwrs += u32::from(sign == Sign::Mark);
        let flight_bytes = segs as u32 * MSS_BYTES;
        for _ in 0..10 {
            at_us += rtt_us / 10;
            una = una.wrapping_add(flight_bytes / 10);
            watch.note(&Observation {
                at_us,
                snd_una: una,
                snd_nxt: una.wrapping_add(flight_bytes - flight_bytes / 10),
                flight_bytes,
                mss_bytes: MSS_BYTES,
                rtt_us: Some(rtt_us as u32),
                srtt_us: rtt_us as u32,
                retransmissions,
                cwrs,
                window_shown_bytes: path.shown_segs * MSS_BYTES,
            });
        }
        segs = law.next(segs, sign, at_us as f64 / 1e6);
    }
    watch.guess()
}

/// RFC 5681 with other constants.
fn aimd(grows_segs: f64, keeps: f64) -> impl Law {
    move |segs, sign, _| if sign == Sign::Nothing { segs + grows_segs } else { segs * keeps }
}

/// RFC 9438, 4.2.
fn cubic() -> impl Law {
    let (mut most, mut since_s, mut reno) = (0.0, 0.0, 0.0);
    move |segs: f64, sign, at_s: f64| {
        if sign != Sign::Nothing {
            (most, since_s, reno) = (segs, at_s, 0.7 * segs);
            return reno;
        }
        reno += 0.529;
        let k_s = (most * 0.3 / 0.4_f64).cbrt();
        (most + 0.4 * (at_s - since_s - k_s).powi(3)).max(reno).max(segs)
    }
}

fn is(guess: &Guess, class: Class) {
    assert_eq!(guess.class, class, "{guess:?}");
    assert!(guess.confidence >= 0.6 && guess.confidence < 1.0, "{guess:?}");
}

#[test]
fn halving_is_reno_like() {
    for marks in [false, true] {
        is(&guess(&Path { marks, ..PATH }, 400, aimd(1.0, 0.5)), Class::RenoLike);
    }
}

#[test]
fn keeping_seven_tenths_and_growing_by_time_is_cubic_like() {
    let seen = guess(&PATH, 600, cubic());
    is(&seen, Class::CubicLike);
    assert!(seen.reasons[0].contains("losses it went to 0.7"), "{seen:?}");
    // Far from Reno's growth: it takes more than 6 s to reach W_max again.
    let long = Path { base_us: 60_000, bdp_segs: 400.0, room_segs: 800.0, ..PATH };
    is(&guess(&long, 1500, cubic()), Class::CubicLike);
}

#[test]
fn keeping_seven_tenths_and_growing_faster_is_not_cubic_like() {
    is(&guess(&PATH, 400, aimd(2.0, 0.7)), Class::RenoLike);
}

#[test]
fn small_frequent_cuts_are_reno_like() {
    let marking = Path { marks: true, ..PATH };
    is(&guess(&marking, 400, aimd(1.0, 0.97)), Class::RenoLike);
    is(&guess(&marking, 400, aimd(1.0, 0.85)), Class::RenoLike);
}

#[test]
fn keeping_a_short_queue_is_delay_based() {
    let vegas = |segs: f64, _, _| if segs < PATH.bdp_segs + 3.0 { segs + 1.0 } else { segs };
    is(&guess(&PATH, 300, vegas), Class::DelayBased);
}

#[test]
fn ignoring_losses_is_delay_based() {
    let mut round = 0;
    let model = |_: f64, _: Sign, _: f64| {
        round += 1;
        if round % 8 == 0 { 101.0 } else { 98.0 }
    };
    is(&guess(&PATH, 300, model), Class::DelayBased);
}

#[test]
fn pausing_every_ten_seconds_is_delay_based() {
    let bbr = |_: f64, _: Sign, at_s: f64| if at_s % 10.1 < 0.2 { 4.0 } else { 70.0 };
    is(&guess(&PATH, 2500, bbr), Class::DelayBased);
    // An application with pauses at other intervals.
    let app = |_: f64, _: Sign, at_s: f64| if at_s % 1.7 < 0.2 { 4.0 } else { 63.0 };
    assert_eq!(guess(&PATH, 2500, app).class, Class::Unknown);
}

#[test]
fn too_few_signs_are_unknown() {
    let fixed = |_: f64, _: Sign, _: f64| 90.0;
    for seen in [
        guess(&PATH, 20, aimd(1.0, 0.5)),
        // Two epochs.
        guess(&PATH, 160, aimd(1.0, 0.5)),
        // A fixed send buffer, with a queue that no congestion control would keep.
        guess(&PATH, 300, fixed),
        // The peer's window.
        guess(&Path { shown_segs: 90, ..PATH }, 300, fixed),
        // 4 segments: 0.5 and 0.7 cannot be distinguished.
        guess(&Path { bdp_segs: 3.0, room_segs: 5.0, ..PATH }, 300, aimd(1.0, 0.5)),
        // Inconsistent reductions.
        {
            let mut times = 0;
            guess(&PATH, 900, move |segs: f64, sign, _| {
                times += u32::from(sign != Sign::Nothing);
                let keeps = [0.5, 0.7][times as usize % 2];
                if sign == Sign::Nothing { segs + 0.5 } else { segs * keeps }
            })
        },
    ] {
        assert_eq!((seen.class, seen.confidence), (Class::Unknown, 0.0), "{seen:?}");
        assert!(!seen.reasons.is_empty());
    }
}

/// Windows that rise and fall, as vcc's do.
#[test]
fn filling_every_window_is_unlimited() {
    let mut watch = Watch::default();
    let mut una = 0_u32;
    let shown = |round: u32| (30 + (round % 30)) * MSS_BYTES;
    for round in 0..200 {
        for part in 0..10 {
            una = una.wrapping_add(shown(round) / 10);
            watch.note(&Observation {
                at_us: u64::from(round * 10 + part) * 1000,
                snd_una: una,
                snd_nxt: una.wrapping_add(shown(round) / 10 * 9),
                flight_bytes: shown(round),
                mss_bytes: MSS_BYTES,
                srtt_us: 10_000,
                window_shown_bytes: shown(round),
                ..Observation::default()
            });
        }
    }
    is(&watch.guess(), Class::Unlimited);
}

/// However long it lasts and however often it is observed.
#[test]
fn the_same_looks_give_the_same_guess() {
    let seen = |()| guess(&PATH, 5000, cubic());
    assert_eq!(seen(()), seen(()));
}
