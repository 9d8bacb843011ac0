//! A recording as curves over time.

use vcc_port::{Flow, TraceEvent};

/// The state right after an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub time_s: f64,
    pub cwnd_bytes: Option<f64>,
    pub ssthresh_bytes: Option<f64>,
    pub window_bytes: Option<f64>,
    pub flight_bytes: f64,
    pub srtt_us: Option<f64>,
}

/// A value of a point, if it is known.
pub type Value = fn(&Point) -> Option<f64>;

#[derive(Default)]
pub struct Series {
    pub points: Vec<Point>,
    /// When the counter increased.
    pub marks_s: Vec<f64>,
    pub reductions_s: Vec<f64>,
    /// The least distance of points.
    step_s: f64,
    began_us: Option<u64>,
    counted: Option<(u32, u32)>,
}

impl Point {
    fn from_flow(time_s: f64, flow: &Flow) -> Self {
        let state = &flow.state;
        let bytes = |segs: u32| f64::from(segs) * f64::from(state.mss_bytes);
        Self {
            time_s,
            cwnd_bytes: state.cwnd_bytes().map(|bytes| bytes as f64),
            ssthresh_bytes: state.ssthresh_segs().map(bytes),
            window_bytes: state.window_shown_bytes().map(f64::from),
            flight_bytes: f64::from(state.flight_bytes()),
            srtt_us: (state.srtt_us8 != 0).then(|| f64::from(state.srtt_us8) / 8.0),
        }
    }
}

/// When there are so many points, every other one goes, and their distance doubles.
const POINTS_MAX: usize = 1 << 18;

impl Series {
    /// Time counts from the first event.
    pub fn complete() -> Self {
        Self::default()
    }

    /// Time counts from 0.
    pub fn from_zero() -> Self {
        Self::thinned(0, 0.0)
    }

    /// Time counts from `began_us`; of points closer than `step_s` the last one is kept.
    pub fn thinned(began_us: u64, step_s: f64) -> Self {
        Self { began_us: Some(began_us), step_s, ..Default::default() }
    }

    pub fn note(&mut self, event: &TraceEvent) {
        let began_us = *self.began_us.get_or_insert(event.at_us);
        // Events of two CPUs may be slightly out of order.
        let time_s = event.at_us.saturating_sub(began_us) as f64 / 1e6;
        // The last point is replaced until it is far enough from its predecessor.
        if let [.., before, last] = &self.points[..]
            && last.time_s - before.time_s < self.step_s
        {
            self.points.pop();
        }
        self.points.push(Point::from_flow(time_s, &event.flow));
        if self.points.len() > POINTS_MAX {
            self.step_s = 2.0 * time_s / POINTS_MAX as f64;
            halve(&mut self.points);
        }
        let state = &event.flow.state;
        let now = (state.marks, state.reductions);
        let before = self.counted.replace(now).unwrap_or(now);
        if now.0 > before.0 {
            push_bounded(&mut self.marks_s, time_s);
        }
        if now.1 > before.1 {
            push_bounded(&mut self.reductions_s, time_s);
        }
    }

    /// Drops everything before this time, except for the last point.
    pub fn forget_before(&mut self, time_s: f64) {
        let keep = self.points.partition_point(|point| point.time_s < time_s);
        // Curves begin at the last point before.
        self.points.drain(..keep.saturating_sub(1));
        self.marks_s.retain(|at_s| *at_s >= time_s);
        self.reductions_s.retain(|at_s| *at_s >= time_s);
    }

    /// Over time.
    pub fn curve(&self, of: Value) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|point| Some((point.time_s, of(point)?))).collect()
    }
}

fn push_bounded(times_s: &mut Vec<f64>, time_s: f64) {
    if times_s.len() >= POINTS_MAX {
        halve(times_s);
    }
    times_s.push(time_s);
}

/// Keeps every other one.
fn halve<T>(all: &mut Vec<T>) {
    let mut is_kept = false;
    all.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
}

#[cfg(test)]
pub mod tests {
    use vcc_view::testing;

    use super::*;

    /// An ACK in a connection of 10 segments' window.
    pub fn event(at_us: u64, marks: u32, reductions: u32) -> TraceEvent {
        let mut state = testing::state();
        (state.0.marks, state.0.reductions) = (marks, reductions);
        let end = |text: &str| text.parse().expect("an end");
        let (guest, peer) = (end("192.0.2.1:40000"), end("192.0.2.2:5001"));
        TraceEvent { at_us, flow: Flow { guest, peer, vlan: None, inside: false, state } }
    }

    #[test]
    fn ticks_are_where_counters_went_up() {
        let mut series = Series::complete();
        for (at_us, marks, reductions) in
            [(5_000_000, 7, 3), (6_000_000, 8, 3), (7_000_000, 9, 4), (8_000_000, 9, 4)]
        {
            series.note(&event(at_us, marks, reductions));
        }
        assert_eq!(
            (series.marks_s.as_slice(), series.reductions_s.as_slice()),
            (&[1.0, 2.0][..], &[2.0][..])
        );
        assert_eq!(series.curve(|point| point.cwnd_bytes)[3], (3.0, 14_400.0));
        assert_eq!(series.points[0].ssthresh_bytes, Some(11_520.0));
        assert_eq!(series.points.len(), 4);
        series.forget_before(1.5);
        assert_eq!(series.points[0].time_s, 1.0);
        assert_eq!(series.marks_s, [2.0]);
    }

    #[test]
    fn a_long_recording_keeps_its_span_in_bounded_memory() {
        let mut series = Series::complete();
        let events = 3 * POINTS_MAX as u64;
        (0..events).for_each(|step| series.note(&event(step * 1000, step as u32, 0)));
        let count = series.points.len();
        assert!((POINTS_MAX / 4..=POINTS_MAX).contains(&count), "{count}");
        assert!((POINTS_MAX / 4..=POINTS_MAX).contains(&series.marks_s.len()));
        assert_eq!(series.points[0].time_s, 0.0);
        assert_eq!(series.points.last().map(|it| it.time_s), Some((events - 1) as f64 / 1e3));
        let is_rising = series.points.is_sorted_by(|one, next| one.time_s < next.time_s);
        assert!(is_rising);
    }

    #[test]
    fn points_that_come_too_fast_are_thinned() {
        let mut series = Series::thinned(0, 0.01);
        (0..=100).for_each(|step| series.note(&event(step * 1000, 0, 0)));
        let times: Vec<f64> = series.points.iter().map(|point| point.time_s).collect();
        assert!((11..=12).contains(&times.len()), "{times:?}");
        assert_eq!(times.last(), Some(&0.1), "where it stands is always there");
    }
}
