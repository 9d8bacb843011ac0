//! Figures as SVG: a file of its own, or the panels of a page.

mod bars;

use super::{Figure, Report};
use vcc_plot::{Area, Canvas, Ink, legend, lines};

const COLUMN_WIDTH: f64 = 470.0;
const PANEL_HEIGHT: f64 = 250.0;
const HEADER_HEIGHT: f64 = 84.0;
const FOOTER_HEIGHT: f64 = 48.0;

/// A page's panels; a single one is wider. Narrow enough to be read on a phone.
const PAGE_COLUMN_WIDTH: f64 = 400.0;
const PAGE_SINGLE_WIDTH: f64 = 600.0;

pub fn render_svg(report: &Report) -> String {
    let figure = &report.figure;
    let (panels, names) = (figure.panel_count(), names(figure));
    let columns = panels.clamp(1, 2);
    let rows = panels.div_ceil(2).max(1);
    // A single panel has the width of two.
    let panel_width = COLUMN_WIDTH * 2.0 / columns as f64;
    let height = HEADER_HEIGHT + rows as f64 * PANEL_HEIGHT + FOOTER_HEIGHT;
    let mut canvas = Canvas::file(COLUMN_WIDTH * 2.0, height);
    header(&mut canvas, report, &names);
    for index in 0..panels {
        let left = (index % columns) as f64 * panel_width;
        let top = HEADER_HEIGHT + (index / columns) as f64 * PANEL_HEIGHT;
        draw(&mut canvas, plot_area(left, top, panel_width), figure, index, &names);
    }
    let is_metric = report.definitions.contains_key(figure.y());
    let explanation = figure.explanation(is_metric, report.schedule.runs);
    canvas.text((16.0, height - 30.0), 11.0, "start", Ink::Text, &explanation);
    let machine = &report.machine;
    let foot = format!(
        "stack {}, {}{}; Linux {}, {} CPUs{}",
        report.stack,
        report.seeds(),
        if report.quick { ", quick run" } else { "" },
        machine.kernel,
        machine.cpus,
        if report.valid { "" } else { "; NOT every run was valid" },
    );
    canvas.text((16.0, height - 12.0), 11.0, "start", Ink::Label, &foot);
    canvas.finish()
}

/// A figure in the parts that a page arranges itself.
pub(super) struct PageFigure {
    /// Names in the order of their inks; none where the panels say all.
    pub legend: Vec<String>,
    pub panels: Vec<String>,
}

pub(super) fn for_page(figure: &Figure) -> PageFigure {
    let (panels, names) = (figure.panel_count(), names(figure));
    let width = if panels == 1 { PAGE_SINGLE_WIDTH } else { PAGE_COLUMN_WIDTH };
    let drawn = (0..panels).map(|index| {
        let mut canvas = Canvas::inline(width, PANEL_HEIGHT, &spoken(figure, index));
        draw(&mut canvas, plot_area(0.0, 0.0, width), figure, index, &names);
        canvas.finish()
    });
    let drawn = drawn.collect();
    let says_all = match figure {
        Figure::Bars { panels, .. } => bars::are_labelled(panels),
        Figure::Lines { .. } => false,
    };
    let legend = if says_all || names.len() < 2 { Vec::new() } else { names };
    PageFigure { legend, panels: drawn }
}

fn spoken(figure: &Figure, index: usize) -> String {
    let title = match figure {
        Figure::Bars { panels, .. } => &panels[index].title,
        Figure::Lines { panels, .. } => &panels[index].title,
    };
    if title.is_empty() { figure.y().into() } else { format!("{}, {title}", figure.y()) }
}

fn names(figure: &Figure) -> Vec<String> {
    match figure {
        Figure::Bars { panels, .. } => bars::names(panels),
        Figure::Lines { panels, .. } => lines::names(panels),
    }
}

/// The area of a panel without its title and labels.
fn plot_area(left: f64, top: f64, width: f64) -> Area {
    Area { left: left + 62.0, top: top + 24.0, width: width - 82.0, height: PANEL_HEIGHT - 72.0 }
}

/// One panel; the vertical axis is that of all.
fn draw(canvas: &mut Canvas, area: Area, figure: &Figure, index: usize, names: &[String]) {
    match figure {
        Figure::Bars { y, panels } => {
            bars::draw(canvas, area, &bars::axis(y, panels), &panels[index], names);
        }
        Figure::Lines { x, x_scale, y, panels } => {
            let y = lines::axis(y, panels);
            lines::draw(canvas, area, (x, *x_scale), &y, &panels[index], names);
        }
    }
}

fn header(canvas: &mut Canvas, report: &Report, names: &[String]) {
    canvas.bold((16.0, 28.0), 17.0, &format!("{}: {}", report.experiment, report.title));
    legend(canvas, 16.0, 44.0, names);
}
