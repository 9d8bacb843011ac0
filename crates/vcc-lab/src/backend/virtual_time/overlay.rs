//! Infers the class of a guest's congestion control from its port's recording.

use crate::scenario::Guest;
use vcc_domain::{Inferred, TracedAck};
use vcc_overlay::{Class, Guess, Observation, Watch, rtt_between};
use vcc_results::result::Guessed;

/// None where nothing was recorded.
pub fn guess<'a>(guest: &Guest, acks: impl Iterator<Item = &'a TracedAck>) -> Option<Guessed> {
    let mut watch = Watch::default();
    let mut acks = acks.peekable();
    acks.peek()?;
    acks.for_each(|ack| watch.note(&observation(ack)));
    let Guess { class, confidence, reasons } = watch.guess();
    let congestion_control = guest.congestion_control.clone();
    let truth = class_of(&congestion_control);
    Some(Guessed {
        congestion_control,
        truth: truth.map(|class| class.to_string()),
        class: class.to_string(),
        confidence,
        reasons,
    })
}

/// HighSpeed TCP and Illinois are Reno with other constants, DCTCP is Reno but for its answer to
/// marks.
fn class_of(congestion_control: &str) -> Option<Class> {
    match congestion_control {
        "reno" | "dctcp" | "highspeed" | "illinois" => Some(Class::RenoLike),
        "cubic" => Some(Class::CubicLike),
        "vegas" | "bbr" => Some(Class::DelayBased),
        // Online.
        "flood" => Some(Class::Unlimited),
        _ => None,
    }
}

fn observation(ack: &TracedAck) -> Observation {
    let Inferred { snd_una, flight_bytes, mss_bytes, srtt_us8, .. } = ack.after;
    Observation {
        at_us: ack.at_ns / 1000,
        snd_una,
        snd_nxt: snd_una.wrapping_add(flight_bytes),
        flight_bytes: ack.before.flight_bytes,
        mss_bytes,
        rtt_us: rtt_between(ack.before.srtt_us8, srtt_us8),
        srtt_us: srtt_us8 / 8,
        retransmissions: ack.after.retransmissions,
        cwrs: ack.after.guest_cwrs.into(),
        window_shown_bytes: ack.before.window_shown_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::made;
    use vcc_engine::FlowKey;

    fn ack(at_us: u64, before: Inferred, after: Inferred) -> TracedAck {
        let [guest, peer] = ["10.0.0.1:1", "10.0.0.2:2"].map(|end| end.parse().unwrap());
        TracedAck { at_ns: at_us * 1000, key: FlowKey::new(guest, peer, None), before, after }
    }

    #[test]
    fn an_acknowledgement_is_looked_at_from_both_sides() {
        let before = Inferred {
            snd_una: u32::MAX - 499,
            flight_bytes: 3000,
            cwnd_segs: 10,
            mss_bytes: 1000,
            srtt_us8: 8000,
            retransmissions: 3,
            guest_cwrs: 4,
            window_shown_bytes: 65_536,
        };
        let after = Inferred { snd_una: 500, flight_bytes: 2000, srtt_us8: 8500, ..before };
        let expected = Observation {
            at_us: 7,
            snd_una: 500,
            snd_nxt: 2500,
            flight_bytes: 3000,
            mss_bytes: 1000,
            rtt_us: Some(1500),
            srtt_us: 1062,
            retransmissions: 3,
            cwrs: 4,
            window_shown_bytes: 65_536,
        };
        assert_eq!(observation(&ack(7, before, after)), expected);
        let guessed = guess(&made::guest(), [ack(7, before, after)].iter()).expect("a recording");
        assert_eq!(
            (guessed.class.as_str(), guessed.truth.as_deref()),
            (Guessed::UNKNOWN, Some("reno-like"))
        );
        assert_eq!(guess(&made::guest(), [].iter()), None);
    }
}
