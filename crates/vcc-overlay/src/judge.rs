//! From what was seen to a guess. A connection of which too little was seen, or whose signs
//! disagree, is unknown.

use crate::dips::Dips;
use crate::epochs::Epochs;
use crate::filling::Filling;
use crate::guess::{Class, Guess};
use crate::steady::{Kept, Steady};
use crate::votes::{self, Count};

/// Who fills its window in so many of its round trips shows no window of its own.
const FILLS: f64 = 0.8;
/// So many falls of its window it has to follow.
const FOLLOWED_MIN: u32 = 3;
/// Vegas keeps two to four segments of its own in the queue (Linux: alpha, beta), and its flight.
const QUEUE_SEGS: std::ops::RangeInclusive<f64> = 1.0..=5.0;
const DRIFT: f64 = 0.03;
/// A flight that falls below this share of its most waits for its application.
const BUSY: f64 = 0.4;

/// All that was seen of a connection.
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

/// Says unknown, too: what else is seen then is somebody else's law.
fn by_filling(filling: &Filling) -> Option<Guess> {
    let share = filling.share().filter(|share| *share >= FILLS)?;
    let text =
        format!("in {:.0} % of its round trips it filled the window it was shown", share * 100.0);
    if filling.followed < FOLLOWED_MIN {
        return Some(Guess::unknown(text + ", so that its own is not to be seen"));
    }
    let text = format!("{text}, also when that had fallen, {} times", filling.followed);
    Some(Guess::new(Class::Unlimited, share * votes::confidence(filling.followed as usize), text))
}

fn by_regular_dips(dips: &Dips) -> Option<Guess> {
    let Dips { count, in_time, .. } = *dips;
    if in_time == 0 || 2 * in_time < count {
        return None;
    }
    let text = format!(
        "{count} times, 10 s apart, it had no more than 4 segments in flight for 200 ms, without a loss: \
         as BBR looks for the path's own delay"
    );
    Some(Guess::new(Class::DelayBased, votes::confidence(1 + 2 * in_time as usize), text))
}

fn by_votes(epochs: &Epochs) -> Option<Guess> {
    let winner = Count::of(epochs.done()).winner()?;
    Some(Guess { class: winner.class, confidence: winner.confidence, reasons: winner.reasons })
}

fn by_one_dip(dips: &Dips) -> Option<Guess> {
    let text = "once it had no more than 4 segments in flight for 200 ms, without a loss, and all of its \
                flight right after: as BBR looks for the path's own delay";
    (dips.count == 1).then(|| Guess::new(Class::DelayBased, 0.6, text))
}

/// Not of who pauses again and again: what it keeps in between may be its application's.
fn by_queue(seen: &Seen) -> Option<Guess> {
    let kept = seen.steady.kept().filter(|_| seen.dips.count == 0)?;
    let is_steady = kept.drift_segs.abs() <= (DRIFT * kept.flight_segs).max(1.0);
    let queue = *QUEUE_SEGS.start()..=QUEUE_SEGS.end() + kept.burst_segs;
    if !is_steady || !queue.contains(&kept.queue_segs) || kept.busy < BUSY {
        return None;
    }
    let Kept { rounds, flight_segs, queue_segs, .. } = kept;
    let text = format!(
        "for {rounds} round trips, without a loss or a mark, it kept {flight_segs:.0} segments in flight, of \
         which {queue_segs:.0} did not fit into the path, as Vegas does; a send buffer can have that size by \
         chance"
    );
    Some(Guess::new(Class::DelayBased, 0.6, text))
}

fn unknown(seen: &Seen) -> Guess {
    let Epochs { losses, marks, .. } = seen.epochs;
    let followed = seen.epochs.done().len();
    let text = match (losses + marks, seen.steady.kept()) {
        (0, None) => "too little was seen: no loss, no mark, and few round trips".to_owned(),
        (0, Some(kept)) if kept.busy < BUSY => {
            "it waits for its application: no loss, no mark".to_owned()
        }
        (0, Some(_)) => "nothing made it reduce: no loss, no mark".to_owned(),
        _ => format!(
            "{losses} losses and {marks} marks, of which {followed} could be followed to the next: too few, \
             or they disagree"
        ),
    };
    Guess::unknown(text)
}
