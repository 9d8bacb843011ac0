//! The origin of a benchmark's figures.

use std::path::Path;
use std::time::Instant;

use vcc_command::{output, version};
use vcc_results::report::bench::Measurements;
use vcc_results::report::{BenchReport, Sources};

/// What a report of a benchmark names besides its figures.
pub struct Origin {
    begin: Instant,
    sources: Sources,
}

impl Origin {
    /// Of a benchmark that begins now, and depends on these sources.
    pub fn begin(sources: Sources) -> Self {
        Self { begin: Instant::now(), sources }
    }

    /// Writes figures to a file, as JSON.
    pub fn write(&self, path: &Path, measurements: Measurements) -> anyhow::Result<()> {
        let mut report = BenchReport::new(measurements, &version());
        report.sources = self.sources.clone();
        report.wall_s = Some(self.begin.elapsed().as_secs_f64().round());
        output::write_json(path, &report)
    }
}
