//! Derives a guess from the observations. A connection with too few or contradictory signs is
//! unknown.

use crate::dips::Dips;
use crate::epochs::Epochs;
use crate::filling::Filling;
use crate::guess::{Class, Guess};
use crate::steady::{Kept, Steady};
use crate::votes::{self, Count};

/// A guest that fills its window in this fraction of its round trips shows no window of its own.
const FILLS: f64 = 0.8;
/// Minimum number of window reductions that it must follow.
const FOLLOWED_MIN: u32 = 3;
/// Vegas keeps two to four of its segments queued (Linux: alpha, beta), and a steady flight.
const QUEUE_SEGS: std::ops::RangeInclusive<f64> = 1.0..=5.0;
const DRIFT: f64 = 0.03;
/// A flight that falls below this fraction of its maximum is application-limited.
const BUSY: f64 = 0.4;

/// All observations of a connection.
pub(crate) struct Seen<'a> {
    pub epochs: &'a Epochs,
    pub steady: &'a Steady,
    pub dips: &'a Dips,
    pub filling: &'a Filling,
}

pub(crate) fn judge(seen: &Seen) -> Guess {
    by_filling(seen.filling)
        .or_else(|| by_regular_dips(seen.dips))
        .or_else(|| by_votes(seen.epochs))
        .or_else(|| by_one_dip(seen.dips))
        .or_else(|| by_queue(seen))
        .unwrap_or_else(|| unknown(seen))
}

/// Also returns unknown: such a connection's behaviour is that of the window it is shown.
fn by_filling(filling: &Filling) -> Option<Guess> {
    let share = filling.share().filter(|share| *share >= FILLS)?;
    let text =
        format!("it filled the window it was shown in {:.0} % of its round trips", share * 100.0);
    if filling.followed < FOLLOWED_MIN {
        return Some(Guess::unknown(text + ", which hides its own"));
    }
    let text = format!("{text}, and after {} reductions of that window", filling.followed);
    Some(Guess::new(Class::Unlimited, share * votes::confidence(filling.followed as usize), text))
}

fn by_regular_dips(dips: &Dips) -> Option<Guess> {
    let Dips { count, in_time, .. } = *dips;
    if in_time == 0 || 2 * in_time < count {
        return None;
    }
    let text = format!(
        "{count} times, 10 s apart, it had at most 4 segments in flight for 200 ms, without a loss: \
         BBR's ProbeRTT does that"
    );
    Some(Guess::new(Class::DelayBased, votes::confidence(1 + 2 * in_time as usize), text))
}

fn by_votes(epochs: &Epochs) -> Option<Guess> {
    let winner = Count::from_epochs(epochs.done()).winner()?;
    Some(Guess { class: winner.class, confidence: winner.confidence, reasons: winner.reasons })
}

fn by_one_dip(dips: &Dips) -> Option<Guess> {
    let text = "once it had at most 4 segments in flight for 200 ms, without a loss, and its full \
                flight right after: BBR's ProbeRTT does that";
    (dips.count == 1).then(|| Guess::new(Class::DelayBased, 0.6, text))
}

/// Not for a connection with several pauses: its application may determine the flight in between.
fn by_queue(seen: &Seen) -> Option<Guess> {
    let kept = seen.steady.kept().filter(|_| seen.dips.count == 0)?;
    let is_steady = kept.drift_segs.abs() <= (DRIFT * kept.flight_segs).max(1.0);
    let queue = *QUEUE_SEGS.start()..=QUEUE_SEGS.end() + kept.burst_segs;
    if !is_steady || !queue.contains(&kept.queue_segs) || kept.busy < BUSY {
        return None;
    }
    let Kept { rounds, flight_segs, queue_segs, .. } = kept;
    let text = format!(
        "for {rounds} round trips, without a loss or a mark, it kept {flight_segs:.0} segments in flight \
         and {queue_segs:.0} of them queued, as Vegas does; a send buffer may have that size by chance"
    );
    Some(Guess::new(Class::DelayBased, 0.6, text))
}

fn unknown(seen: &Seen) -> Guess {
    let Epochs { losses, marks, .. } = seen.epochs;
    let followed = seen.epochs.done().len();
    let text = match (losses + marks, seen.steady.kept()) {
        (0, None) => "too few observations: no loss, no mark and few round trips".to_owned(),
        (0, Some(kept)) if kept.busy < BUSY => {
            "it is application-limited: no loss, no mark".to_owned()
        }
        (0, Some(_)) => "it had no reason to reduce: no loss, no mark".to_owned(),
        _ => format!(
            "of {losses} losses and {marks} marks, {followed} could be followed to the next: too few or \
             contradictory"
        ),
    };
    Guess::unknown(text)
}
