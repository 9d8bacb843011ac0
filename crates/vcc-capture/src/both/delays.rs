//! The time from one side to the other.

use super::face::{ByDirection, ByFace, Direction};
use super::median::Samples;

/// The times between the captures of the same segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(ByDirection<Samples>);

/// What these times show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delays {
    /// Neither clock shows a segment before it arrived: median times through the port.
    Agreed(ByDirection<i64>),
    /// The fabric's side's clock is ahead of the guest's by about so much.
    Apart(i64),
    /// The segments pass in the other direction: the guests are the other ends.
    Reversed,
    /// There are segments of one direction, or none.
    Unknown,
}

impl Times {
    pub(crate) fn add(&mut self, direction: Direction, times_ns: ByFace<u64>) {
        let entrance = direction.entrance();
        let since = i128::from(times_ns[entrance.other()]) - i128::from(times_ns[entrance]);
        if let Ok(since_ns) = i64::try_from(since) {
            self.0[direction].add(since_ns);
        }
    }

    pub(crate) fn delays(self) -> Delays {
        let (from_guest, to_guest) = (self.0.from_guest, self.0.to_guest);
        match (from_guest.median_ns(), to_guest.median_ns()) {
            (Some(from_guest), Some(to_guest)) if from_guest >= 0 && to_guest >= 0 => {
                Delays::Agreed(ByDirection { from_guest, to_guest })
            }
            // Both clocks are in the sum once with each sign.
            (Some(from_guest), Some(to_guest)) if from_guest.saturating_add(to_guest) < 0 => {
                Delays::Reversed
            }
            (Some(from_guest), Some(to_guest)) => {
                Delays::Apart(((i128::from(from_guest) - i128::from(to_guest)) / 2) as i64)
            }
            _ => Delays::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(times: &[(Direction, u64, u64)]) -> Delays {
        let mut all = Times::default();
        for &(direction, guest, fabric) in times {
            all.add(direction, ByFace { guest, fabric });
        }
        all.delays()
    }

    #[test]
    fn clocks_agree_if_each_segment_leaves_behind_its_arrival() {
        use Direction::{FromGuest, ToGuest};
        let agreed = ByDirection { from_guest: 5, to_guest: 7 };
        let both = [(FromGuest, 10, 15), (ToGuest, 27, 20)];
        assert_eq!(delays(&both), Delays::Agreed(agreed));
        assert_eq!(delays(&both[..1]), Delays::Unknown);
        let apart = [(FromGuest, 10, 1015), (ToGuest, 27, 1020)];
        assert_eq!(delays(&apart), Delays::Apart(999));
        let reversed = [(ToGuest, 10, 1015), (FromGuest, 27, 1020)];
        assert_eq!(delays(&reversed), Delays::Reversed);
    }
}
