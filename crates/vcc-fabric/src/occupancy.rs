//! Occupancy of a queue over the window: time-weighted mean, maximum, samples.

use super::Window;

pub(super) struct Occupancy {
    window: Window,
    level_bytes: u64,
    since_ns: u64,
    area_byte_ns: u128,
    max_bytes: u64,
    every_ns: Option<u64>,
    series: Vec<(u64, u64)>,
}

impl Occupancy {
    pub fn new(every_us: Option<u64>) -> Self {
        Self {
            window: Window::NEVER,
            level_bytes: 0,
            since_ns: 0,
            area_byte_ns: 0,
            max_bytes: 0,
            every_ns: every_us.map(|us| us * 1000),
            series: Vec::new(),
        }
    }

    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// The backlog is this from now on. Calls come in the order of time.
    pub fn change(&mut self, now_ns: u64, level_bytes: u64) {
        self.pass(now_ns);
        self.level_bytes = level_bytes;
    }

    pub fn finish(&mut self) {
        self.pass(self.window.end_ns);
    }

    pub fn mean_bytes(&self) -> f64 {
        let length_ns = self.window.end_ns.saturating_sub(self.window.start_ns);
        self.area_byte_ns as f64 / length_ns.max(1) as f64
    }

    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    pub fn take_series(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.series)
    }

    fn pass(&mut self, now_ns: u64) {
        let from_ns = self.since_ns.max(self.window.start_ns);
        let to_ns = now_ns.min(self.window.end_ns);
        self.since_ns = self.since_ns.max(now_ns);
        if from_ns >= to_ns {
            return;
        }
        self.area_byte_ns += u128::from(self.level_bytes) * u128::from(to_ns - from_ns);
        self.max_bytes = self.max_bytes.max(self.level_bytes);
        if let Some(every_ns) = self.every_ns {
            let start_ns = self.window.start_ns;
            let first = (from_ns - start_ns).div_ceil(every_ns);
            let end = (to_ns - start_ns).div_ceil(every_ns);
            let samples = (first..end).map(|i| (i * every_ns / 1000, self.level_bytes));
            self.series.extend(samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_levels_by_the_time_they_lasted_within_the_window() {
        let mut occupancy = Occupancy::new(Some(1));
        occupancy.set_window(Window { start_ns: 1_000, end_ns: 11_000 });
        occupancy.change(0, 500);
        occupancy.change(3_000, 100);
        occupancy.change(9_000, 0);
        occupancy.change(20_000, 9_999);
        occupancy.finish();
        // 2 us at 500, 6 us at 100, 2 us at 0.
        assert_eq!(occupancy.mean_bytes(), 160.0);
        assert_eq!(occupancy.max_bytes(), 500);
        let levels: Vec<u64> = occupancy.take_series().iter().map(|sample| sample.1).collect();
        assert_eq!(levels, [500, 500, 100, 100, 100, 100, 100, 100, 0, 0]);
    }

    #[test]
    fn nothing_counts_without_a_window() {
        let mut occupancy = Occupancy::new(Some(1));
        occupancy.change(5, 100);
        occupancy.change(10, 0);
        assert_eq!(occupancy.mean_bytes(), 0.0);
        assert_eq!(occupancy.max_bytes(), 0);
    }
}
