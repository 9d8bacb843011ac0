//! Each epoch votes for a class.

use crate::cubic;
use crate::epochs::{Cause, Epoch};
use crate::guess::Class;
use crate::median::median;
use std::ops::Range;

/// In smaller windows, rounding hides the kept fraction: of 7 segments, 0.5 and 0.7 round to
/// neighbours.
const WINDOW_MIN_SEGS: f64 = 8.0;
/// Bounds of the kept fraction: Reno's 0.5 and CUBIC's 0.7 (RFC 5681, 3.1; RFC 9438, 4.6), divided
/// in the middle.
const HALF: Range<f64> = 0.38..0.62;
const SEVEN_TENTHS: Range<f64> = 0.62..0.80;
/// From this fraction on, the whole window was kept, apart from noise in the flight.
const ALL_OF_IT: f64 = 0.93;
/// Growth relative to CUBIC's.
const AS_CUBIC: Range<f64> = 0.4..1.4;
/// Growth in segments per round trip: Reno's 1, with or without delayed acknowledgements, or that
/// of a similar one.
const AS_RENO: Range<f64> = 0.6..4.0;
/// Minimum fraction of a linear or slowing growth in the first half of its time.
const EVEN: f64 = 0.3;
/// A shorter growth does not reveal its law.
const GROWTH_ROUNDS_MIN: u32 = 3;
/// Minimum number of votes, and the fraction that must agree.
const VOTES_MIN: usize = 3;
const AGREEING: f64 = 0.7;
/// Minimum number of cuts, and of round trips in total, if cuts are too small and frequent to be
/// judged one by one.
const SMALL_CUTS_MIN: usize = 6;
const SMALL_CUTS_ROUNDS_MIN: f64 = 8.0;
/// Reno's growth of one segment per round trip, counted between marks.
const ONE_A_ROUND: Range<f64> = 0.5..1.6;
/// Tolerance for noise: a flight may be larger after a cut by this much.
const CHANCE_SEGS: f64 = 2.0;

/// The vote of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    Reno,
    Cubic,
    /// It had losses or marks and did not reduce.
    Unmoved,
}

/// Confidence by the number of agreeing votes: 0.75 of three, 0.9 of nine.
pub(crate) fn confidence(agreeing: usize) -> f64 {
    agreeing as f64 / (agreeing as f64 + 1.0)
}

fn vote(epoch: &Epoch) -> Option<Vote> {
    if epoch.before_segs < WINDOW_MIN_SEGS {
        return None;
    }
    let kept = epoch.kept();
    if kept >= ALL_OF_IT && epoch.cause == Cause::Loss {
        return Some(Vote::Unmoved);
    }
    if epoch.rounds < GROWTH_ROUNDS_MIN || epoch.gain_segs() <= 0.0 {
        return None;
    }
    if HALF.contains(&kept) {
        return Some(Vote::Reno);
    }
    let grows_as_reno = AS_RENO.contains(&epoch.growth_segs());
    if SEVEN_TENTHS.contains(&kept) {
        let over_cubic = epoch.gain_segs() / cubic::gain_segs(epoch);
        if AS_CUBIC.contains(&over_cubic) {
            return Some(Vote::Cubic);
        }
        // HighSpeed TCP keeps as much of a large window (RFC 3649, 5), Illinois of one with little
        // delay, and both grow faster.
        return (over_cubic >= AS_CUBIC.end).then_some(Vote::Reno);
    }
    // DCTCP keeps 1 - alpha / 2 and grows like Reno (RFC 8257, 3.3); Illinois keeps up to 7/8.
    // BBR's flight is constant for most of its cycle, and then probes.
    let is_cut = kept >= SEVEN_TENTHS.end && epoch.cause == Cause::Mark;
    (is_cut && grows_as_reno && epoch.early_share >= EVEN).then_some(Vote::Reno)
}

/// Marks in nearly every round trip, each with a small cut: the growth is only visible over all of
/// them together.
fn small_cuts(epochs: &[Epoch]) -> Option<Winner> {
    let is_small = |epoch: &&Epoch| {
        epoch.cause == Cause::Mark
            && epoch.before_segs >= WINDOW_MIN_SEGS
            && epoch.kept() >= SEVEN_TENTHS.end
    };
    let small: Vec<&Epoch> = epochs.iter().filter(is_small).collect();
    let rounds: f64 = small.iter().map(|epoch| epoch.growing_rounds()).sum();
    let growth = small.iter().map(|epoch| epoch.gain_segs()).sum::<f64>() / rounds;
    let enough = small.len() >= SMALL_CUTS_MIN
        && small.len() as f64 >= AGREEING * epochs.len() as f64
        && rounds >= SMALL_CUTS_ROUNDS_MIN;
    // BBR is marked as often but does not cut: its flight follows its probes.
    let fits = |epoch: &&&Epoch| {
        let expected_segs = growth * epoch.growing_rounds();
        (epoch.gain_segs() - expected_segs).abs() <= CHANCE_SEGS
            && epoch.after_segs <= epoch.before_segs + CHANCE_SEGS
    };
    let fitting = small.iter().filter(fits).count();
    if !enough || !ONE_A_ROUND.contains(&growth) || (fitting as f64) < AGREEING * small.len() as f64
    {
        return None;
    }
    let kept = median(small.iter().map(|epoch| epoch.kept()));
    let text = format!(
        "{} marks each took a little of its window, which kept {kept:.2}; between them it grew by \
         {growth:.2} segments per round trip, as DCTCP does",
        small.len()
    );
    // They cannot be judged one by one, so they do not count one by one.
    let confidence = confidence(small.len() / 2);
    Some(Winner { class: Class::RenoLike, confidence, reasons: vec![text] })
}

/// The votes of all epochs.
pub(crate) struct Count<'a> {
    epochs: &'a [Epoch],
    votes: Vec<(Vote, &'a Epoch)>,
}

pub(crate) struct Winner {
    pub class: Class,
    pub confidence: f64,
    pub reasons: Vec<String>,
}

impl<'a> Count<'a> {
    pub fn from_epochs(epochs: &'a [Epoch]) -> Self {
        let votes = epochs.iter().filter_map(|epoch| Some((vote(epoch)?, epoch))).collect();
        Self { epochs, votes }
    }

    pub fn winner(&self) -> Option<Winner> {
        self.majority().or_else(|| small_cuts(self.epochs))
    }

    fn majority(&self) -> Option<Winner> {
        let of = |wanted: Vote| self.votes.iter().filter(|(vote, _)| *vote == wanted).count();
        let parties = [Vote::Reno, Vote::Cubic, Vote::Unmoved].map(|vote| (vote, of(vote)));
        let (vote, agreeing) = parties.into_iter().max_by_key(|(_, count)| *count)?;
        let share = agreeing as f64 / self.votes.len() as f64;
        if agreeing < VOTES_MIN || share < AGREEING {
            return None;
        }
        let class = match vote {
            Vote::Reno => Class::RenoLike,
            Vote::Cubic => Class::CubicLike,
            Vote::Unmoved => Class::DelayBased,
        };
        let reasons = vec![self.reason(vote, agreeing)];
        Some(Winner { class, confidence: share * confidence(agreeing), reasons })
    }

    fn reason(&self, party: Vote, agreeing: usize) -> String {
        let own = || self.votes.iter().filter(|(vote, _)| *vote == party).map(|(_, epoch)| *epoch);
        let kept = median(own().map(Epoch::kept));
        let losses = own().filter(|epoch| epoch.cause == Cause::Loss).count();
        let what = match (losses, agreeing - losses) {
            (losses, 0) => format!("{losses} losses"),
            (0, marks) => format!("{marks} marks"),
            (losses, marks) => format!("{losses} losses and {marks} marks"),
        };
        if party == Vote::Unmoved {
            return format!(
                "after {what} it still had {kept:.2} of its flight, without filling its window: BBR, \
                 which follows a model of the path, does that"
            );
        }
        let growth = median(own().map(Epoch::growth_segs));
        let shape = match median(own().map(|epoch| epoch.early_share)) {
            share if share >= 0.65 => "ever more slowly, ",
            share if share <= 0.35 => "ever faster, ",
            _ => "",
        };
        format!(
            "after {what} it went to {kept:.2} of its flight, then grew {shape}by {growth:.2} segments \
             per round trip"
        )
    }
}
