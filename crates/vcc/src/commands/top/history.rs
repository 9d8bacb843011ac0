//! How a connection came to where it is.

use std::collections::VecDeque;

use crate::seen::FlowView;

/// As wide as a terminal may reasonably be.
const POINTS: usize = 240;

#[derive(Default)]
pub struct History {
    points: VecDeque<Point>,
    pub(super) round: u64,
}

#[derive(Clone, Copy)]
pub struct Point {
    pub goodput_bits_per_s: f32,
    pub window_shown_bytes: u32,
    pub marks_per_s: f32,
}

impl History {
    pub fn note(&mut self, flow: &FlowView) {
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back(Point {
            goodput_bits_per_s: flow.goodput_bits_per_s.unwrap_or_default() as f32,
            window_shown_bytes: flow.window_shown_bytes.unwrap_or_default(),
            marks_per_s: flow.marks_per_s.unwrap_or_default() as f32,
        });
    }

    /// The last so many, the oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = Point> + '_ {
        self.points.iter().skip(self.points.len().saturating_sub(count)).copied()
    }
}
