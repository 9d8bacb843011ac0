//! Shapes and text, written as SVG.

use std::fmt::Write as _;

use crate::{Area, Ink};

pub struct Canvas {
    svg: String,
}

type Point = (f64, f64);

impl Canvas {
    /// A file of its own, on a ground that is light or dark as the viewer is.
    pub fn file(width: f64, height: f64) -> Self {
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\">\n\
             <style>\n@media (prefers-color-scheme: dark) {{"
        );
        for ink in Ink::all() {
            let (class, colour) = (ink.class(), ink.on_dark());
            let _ = writeln!(
                svg,
                "rect.{class}, circle.{class}, text.{class} {{ fill: {colour} }}\n\
                 line.{class}, polyline.{class} {{ stroke: {colour} }}"
            );
        }
        let ground = inked("fill", Ink::Ground);
        let _ = writeln!(svg, "}}\n</style>\n<rect width=\"100%\" height=\"100%\" {ground}/>");
        Self { svg }
    }

    /// A part of a page, on its ground and as wide as there is room; `name` is for who cannot see.
    pub fn inline(width: f64, height: f64, name: &str) -> Self {
        let name = escaped(name);
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\">"
        );
        Self { svg }
    }

    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }

    pub fn rectangle(&mut self, area: Area, ink: Ink) {
        let Area { left, top, width, height } = area;
        let _ = writeln!(
            self.svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {}/>",
            inked("fill", ink)
        );
    }

    pub fn line(&mut self, from: Point, to: Point, ink: Ink) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {}/>",
            from.0,
            from.1,
            to.0,
            to.1,
            inked("stroke", ink)
        );
    }

    pub fn path(&mut self, points: impl Iterator<Item = Point>, ink: Ink, width: f64) {
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if ink.is_dashed() { " stroke-dasharray=\"6 3\"" } else { "" };
        let _ = writeln!(
            self.svg,
            "<polyline points=\"{}\" fill=\"none\" {} stroke-width=\"{width}\"{dashes}/>",
            points.join(" "),
            inked("stroke", ink)
        );
    }

    pub fn dot(&mut self, at: Point, ink: Ink) {
        let (x, y) = at;
        let ink = inked("fill", ink);
        let _ = writeln!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" {ink}/>");
    }

    pub fn text(&mut self, at: Point, size: f64, anchor: &str, ink: Ink, text: &str) {
        self.put(at, size, &format!("text-anchor=\"{anchor}\" {}", inked("fill", ink)), text);
    }

    pub fn bold(&mut self, at: Point, size: f64, text: &str) {
        self.put(at, size, &format!("font-weight=\"bold\" {}", inked("fill", Ink::Text)), text);
    }

    /// Text that is turned by some degrees about its anchor.
    pub fn turned(&mut self, at: Point, degrees: i32, size: f64, anchor: &str, text: &str) {
        let turn = format!("transform=\"rotate({degrees} {:.1} {:.1})\"", at.0, at.1);
        let ink = inked("fill", Ink::Label);
        self.put(at, size, &format!("text-anchor=\"{anchor}\" {ink} {turn}"), text);
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

fn inked(attribute: &str, ink: Ink) -> String {
    format!("class=\"{}\" {attribute}=\"{}\"", ink.class(), ink.colour())
}

/// For text and attributes of XML and HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_colours_for_a_dark_ground() {
        let mut canvas = Canvas::file(10.0, 20.0);
        canvas.line((0.0, 0.0), (1.0, 1.0), Ink::Series(8));
        let svg = canvas.finish();
        let (style, shapes) = svg.split_once("</style>").unwrap();
        assert!(style.contains("@media (prefers-color-scheme: dark) {\n"), "{style}");
        assert!(style.contains("line.series-1, polyline.series-1 { stroke: #f08a4b }"), "{style}");
        assert!(shapes.contains("class=\"ground\" fill=\"#ffffff\""), "{shapes}");
        assert!(shapes.contains("class=\"series-1\" stroke=\"#d55e00\""), "{shapes}");
        for ink in Ink::all() {
            assert_ne!(ink.colour(), ink.on_dark(), "{ink:?}");
        }
    }

    #[test]
    fn text_cannot_break_out() {
        let mut canvas = Canvas::inline(10.0, 10.0, "\" onload=\"x");
        canvas.bold((0.0, 0.0), 10.0, "a < b & </text>");
        let svg = canvas.finish();
        assert!(svg.contains("a &lt; b &amp; &lt;/text&gt;</text>"), "{svg}");
        assert!(svg.contains("aria-label=\"&quot; onload=&quot;x\""), "{svg}");
    }
}
