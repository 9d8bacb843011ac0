//! Benchmarks of single figures.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_results::report::bench::{Figure, Measurements};

use super::Origin;

/// Measures in namespaces of their own; prints the figures, and writes them to `json`.
pub fn run_isolated(
    origin: &Origin,
    json: Option<&Path>,
    kind: impl FnOnce(Vec<Figure>) -> Measurements,
    measure: impl FnOnce() -> anyhow::Result<Vec<Figure>> + Send,
) -> anyhow::Result<ExitCode> {
    let measured = vcc_port::isolated(measure);
    let figures = measured.context("cannot make namespaces (it takes root)")??;
    output::say(&table(&figures));
    if let Some(path) = json {
        origin.write(path, kind(figures))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn figure(name: &str, what: &str, value: f64, unit: &str) -> Figure {
    Figure { name: name.into(), what: what.into(), value, unit: unit.into() }
}

fn table(figures: &[Figure]) -> String {
    let mut table = Table::new([
        ("CASE", Align::Left),
        ("VALUE", Align::Right),
        ("UNIT", Align::Left),
        ("WHAT", Align::Left),
    ]);
    for figure in figures {
        let Figure { name, what, unit, .. } = figure;
        table.row([name.clone(), figure.number(), unit.clone(), what.clone()]);
    }
    table.render()
}
