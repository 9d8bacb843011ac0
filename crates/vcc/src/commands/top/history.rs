//! The recent history of a connection.

use std::collections::VecDeque;

use vcc_view::FlowView;

/// The width of a very wide terminal.
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
        let rates = flow.rates.unwrap_or_default();
        self.points.push_back(Point {
            goodput_bits_per_s: rates.goodput_bits_per_s as f32,
            window_shown_bytes: flow.state.window_shown_bytes().unwrap_or_default(),
            marks_per_s: rates.marks_per_s as f32,
        });
    }

    /// The last points, the oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = Point> + '_ {
        self.points.iter().skip(self.points.len().saturating_sub(count)).copied()
    }
}
