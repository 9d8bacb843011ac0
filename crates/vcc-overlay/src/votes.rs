//! What speaks for a class are epochs, each of which has a vote.

use crate::cubic;
use crate::epochs::{Cause, Epoch};
use crate::guess::Class;
use crate::median::median;
use std::ops::Range;

/// Below so many segments what a reduction keeps cannot be told: of 7, both 0.5 and 0.7 are whole.
const WINDOW_MIN_SEGS: f64 = 8.0;
/// What Reno keeps is 0.5, CUBIC 0.7 (RFC 5681, 3.1; RFC 9438, 4.6), and between them lies the bound.
const HALF: Range<f64> = 0.38..0.62;
const SEVEN_TENTHS: Range<f64> = 0.62..0.80;
/// From here on it kept all of its window, but for what a flight is less by chance.
const ALL_OF_IT: f64 = 0.93;
/// Its growth over what CUBIC's would be.
const AS_CUBIC: Range<f64> = 0.4..1.4;
/// Growth in segments a round trip that is Reno's 1, with delayed acknowledgements or without, or that
/// of its kind.
const AS_RENO: Range<f64> = 0.6..4.0;
/// Of a growth that is even, or slows down, so much comes in the first half of its time at the least.
const EVEN: f64 = 0.3;
/// A shorter growth says nothing of its law.
const GROWTH_ROUNDS_MIN: u32 = 3;
/// Votes without which nothing is said, and what share must agree.
const VOTES_MIN: usize = 3;
const AGREEING: f64 = 0.7;
/// Of cuts too small and too close to be told apart one by one: so many, with so long a growth in all.
const SMALL_CUTS_MIN: usize = 6;
const SMALL_CUTS_ROUNDS_MIN: f64 = 8.0;
/// Of Reno's own growth, a segment a round trip, counted between the marks.
const ONE_A_ROUND: Range<f64> = 0.5..1.6;
/// No cut takes something away and leaves more; a flight may be a segment more by chance.
const CHANCE_SEGS: f64 = 2.0;

/// What one epoch speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    Reno,
    Cubic,
    /// It lost something and went on as before.
    Unmoved,
}

/// The more that agree, the surer: 0.75 of three, 0.9 of nine.
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
        // HighSpeed TCP keeps as much of a large window (RFC 3649, 5), Illinois of one without much delay,
        // and both grow by more.
        return (over_cubic >= AS_CUBIC.end).then_some(Vote::Reno);
    }
    // DCTCP keeps 1 - alpha / 2 and grows as Reno does (RFC 8257, 3.3); Illinois up to 7/8. BBR's flight is as
    // it was for most of its cycle, and then probes.
    let is_cut = kept >= SEVEN_TENTHS.end && epoch.cause == Cause::Mark;
    (is_cut && grows_as_reno && epoch.early_share >= EVEN).then_some(Vote::Reno)
}

/// Marks that come nearly every round trip, each with a small cut: only of all together the growth can be
/// told.
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
    // BBR is marked as often, but cuts nothing: its flight goes up and down with its probes.
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
         {growth:.2} segments a round trip, as DCTCP does",
        small.len()
    );
    // They are not told apart one by one, so they do not count one by one.
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
    pub fn of(epochs: &'a [Epoch]) -> Self {
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
        let reasons = vec![self.told(vote, agreeing)];
        Some(Winner { class, confidence: share * confidence(agreeing), reasons })
    }

    fn told(&self, party: Vote, agreeing: usize) -> String {
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
                "after {what} it still had {kept:.2} of its flight, and did not fill its window either: as \
                 BBR goes by a model of the path"
            );
        }
        let growth = median(own().map(Epoch::growth_segs));
        let shape = match median(own().map(|epoch| epoch.early_share)) {
            share if share >= 0.65 => "more and more slowly, ",
            share if share <= 0.35 => "faster and faster, ",
            _ => "",
        };
        format!(
            "after {what} it went to {kept:.2} of its flight, then grew {shape}by {growth:.2} segments a \
             round trip"
        )
    }
}
