//! The figure as a self-contained SVG.

mod axis;
mod bars;
mod canvas;
mod lines;

use super::{Figure, Report};
use axis::Axis;
use canvas::Canvas;

/// Colours that people with colour-blindness can tell apart (Okabe and Ito 2008).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];
const COLUMN_WIDTH: f64 = 470.0;
const PANEL_HEIGHT: f64 = 250.0;
const HEADER_HEIGHT: f64 = 84.0;
const FOOTER_HEIGHT: f64 = 30.0;

/// Where one panel's plot area lies.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

pub fn render_svg(report: &Report) -> String {
    let (panels, names) = match &report.figure {
        Figure::Bars { panels, .. } => (panels.len(), bars::names(panels)),
        Figure::Lines { panels, .. } => (panels.len(), lines::names(panels)),
    };
    let columns = panels.clamp(1, 2);
    let rows = panels.div_ceil(2).max(1);
    // A single panel has the width of two.
    let panel_width = COLUMN_WIDTH * 2.0 / columns as f64;
    let height = HEADER_HEIGHT + rows as f64 * PANEL_HEIGHT + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(COLUMN_WIDTH * 2.0, height);
    header(&mut canvas, report, &names);
    let area = |index: usize| Area {
        left: (index % columns) as f64 * panel_width + 62.0,
        top: HEADER_HEIGHT + (index / columns) as f64 * PANEL_HEIGHT + 24.0,
        width: panel_width - 82.0,
        height: PANEL_HEIGHT - 72.0,
    };
    match &report.figure {
        Figure::Bars { y, panels } => bars::draw(&mut canvas, area, y, panels, &names),
        Figure::Lines { x, x_scale, y, panels } => {
            lines::draw(&mut canvas, area, (x, *x_scale, y), panels, &names);
        }
    }
    let machine = &report.machine;
    let foot = format!(
        "stack {}, seed {}{}; Linux {}, {} CPUs{}",
        report.stack,
        report.seed,
        if report.quick { ", quick run" } else { "" },
        machine.kernel,
        machine.cpus,
        if report.valid { "" } else { "; NOT every run was valid" },
    );
    canvas.text((16.0, height - 12.0), 11.0, "start", "#666666", &foot);
    canvas.finish()
}

fn header(canvas: &mut Canvas, report: &Report, names: &[String]) {
    canvas.bold((16.0, 28.0), 17.0, &format!("{}: {}", report.experiment, report.title));
    let mut left = 16.0;
    for (index, name) in names.iter().enumerate() {
        canvas.rectangle(Area { left, top: 44.0, width: 12.0, height: 12.0 }, colour(index));
        canvas.text((left + 18.0, 54.0), 12.0, "start", "#222222", name);
        left += 36.0 + 7.0 * name.chars().count() as f64;
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Title, grid, vertical axis and frame of a panel.
fn furnish(canvas: &mut Canvas, area: Area, title: &str, y: &Axis) {
    canvas.text((area.left, area.top - 8.0), 13.0, "start", "#222222", title);
    for tick in y.ticks() {
        let at = area.top + area.height * (1.0 - y.position(tick));
        canvas.line((area.left, at), (area.left + area.width, at), "#e4e4e4");
        canvas.text((area.left - 6.0, at + 4.0), 11.0, "end", "#444444", &y.label(tick));
    }
    let bottom = area.top + area.height;
    canvas.line((area.left, bottom), (area.left + area.width, bottom), "#888888");
    canvas.line((area.left, area.top), (area.left, bottom), "#888888");
    canvas.vertical((area.left - 48.0, area.top + area.height / 2.0), 11.0, y.name());
}

/// The distinct values in the order in which they first come.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn index_of(names: &[String], name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or(0)
}
