//! Plots as SVG: what the lab's figures and a connection's recording are drawn with.

mod axis;
mod canvas;
mod ink;
pub mod lines;

pub use axis::{Axis, Scale};
pub use canvas::{Canvas, escaped};
pub use ink::Ink;
pub use lines::{Line, LinePanel};

/// Position and size of a panel's plot area.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// Names with the inks of their places.
pub fn legend(canvas: &mut Canvas, mut left: f64, top: f64, names: &[String]) {
    for (index, name) in names.iter().enumerate() {
        canvas.rectangle(Area { left, top, width: 12.0, height: 12.0 }, Ink::Series(index));
        canvas.text((left + 18.0, top + 10.0), 12.0, "start", Ink::Text, name);
        left += 36.0 + 7.0 * name.chars().count() as f64;
    }
}

/// Title, grid, vertical axis and frame of a panel.
pub fn furnish(canvas: &mut Canvas, area: Area, title: &str, y: &Axis) {
    canvas.text((area.left, area.top - 8.0), 13.0, "start", Ink::Text, title);
    for tick in y.ticks() {
        let at = area.top + area.height * (1.0 - y.position(tick));
        canvas.line((area.left, at), (area.left + area.width, at), Ink::Grid);
        canvas.text((area.left - 6.0, at + 4.0), 11.0, "end", Ink::Label, &y.label(tick));
    }
    let bottom = area.top + area.height;
    let zero = area.top + area.height * (1.0 - y.position(0.0));
    canvas.line((area.left, zero), (area.left + area.width, zero), Ink::Axis);
    canvas.line((area.left, area.top), (area.left, bottom), Ink::Axis);
    canvas.turned((area.left - 48.0, area.top + area.height / 2.0), -90, 11.0, "middle", y.name());
}

/// The horizontal axis below a panel.
pub fn furnish_below(canvas: &mut Canvas, area: Area, x: &Axis) {
    let bottom = area.top + area.height;
    for tick in x.ticks() {
        let left = area.left + area.width * x.position(tick);
        canvas.line((left, bottom), (left, bottom + 4.0), Ink::Axis);
        canvas.text((left, bottom + 16.0), 11.0, "middle", Ink::Label, &x.label(tick));
    }
    let middle = area.left + area.width / 2.0;
    canvas.text((middle, bottom + 32.0), 11.0, "middle", Ink::Label, x.name());
}

/// The distinct values in the order in which they first come.
pub fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

pub fn index_of(names: &[String], name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or(0)
}
