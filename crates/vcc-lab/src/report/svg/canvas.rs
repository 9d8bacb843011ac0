//! Shapes and text, written as SVG.

use super::Area;
use std::fmt::Write as _;

pub(super) struct Canvas {
    svg: String,
}

type Point = (f64, f64);

impl Canvas {
    pub fn new(width: f64, height: f64) -> Self {
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
        );
        Self { svg }
    }

    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    pub fn rectangle(&mut self, area: Area, fill: &str) {
        let Area { left, top, width, height } = area;
        let _ = writeln!(
            self.svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{fill}\"/>"
        );
    }

    pub fn line(&mut self, from: Point, to: Point, stroke: &str) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{stroke}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub fn path(&mut self, points: impl Iterator<Item = Point>, stroke: &str, width: f64) {
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>",
            points.join(" ")
        );
    }

    pub fn dot(&mut self, at: Point, fill: &str) {
        let (x, y) = at;
        let _ = writeln!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\"/>");
    }

    pub fn text(&mut self, at: Point, size: f64, anchor: &str, fill: &str, text: &str) {
        let attributes = format!("text-anchor=\"{anchor}\" fill=\"{fill}\"");
        self.put(at, size, &attributes, text);
    }

    pub fn bold(&mut self, at: Point, size: f64, text: &str) {
        self.put(at, size, "font-weight=\"bold\" fill=\"#111111\"", text);
    }

    /// Text that reads upwards, centred.
    pub fn vertical(&mut self, at: Point, size: f64, text: &str) {
        let turn = format!("transform=\"rotate(-90 {:.1} {:.1})\"", at.0, at.1);
        self.put(at, size, &format!("text-anchor=\"middle\" fill=\"#444444\" {turn}"), text);
    }

    fn put(&mut self, at: Point, size: f64, attributes: &str, text: &str) {
        let _ = writeln!(
            self.svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\" {attributes}>{}</text>",
            at.0,
            at.1,
            escaped(text)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        let mut canvas = Canvas::new(10.0, 10.0);
        canvas.bold((0.0, 0.0), 10.0, "a < b & </text>");
        assert!(canvas.finish().contains("a &lt; b &amp; &lt;/text&gt;</text>"));
    }
}
