//! The report as a page: one file, which loads nothing.

use std::fmt::Write as _;

use vcc_plot::{Area, Axis, Canvas, Line, LinePanel, Scale, escaped, lines};

use super::groups::{HOUR_S, Hour, Report, Sums, percent, time};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 230.0;
const AREA: Area = Area { left: 70.0, top: 30.0, width: WIDTH - 90.0, height: HEIGHT - 80.0 };

/// A plot of a group, with a value for each hour.
struct Plot {
    title: &'static str,
    unit: &'static str,
    value: fn(&Hour) -> f64,
}

const PLOTS: [Plot; 4] = [
    Plot { title: "Goodput", unit: "Mbit/s", value: |hour| hour.goodput_mbit_per_s() },
    Plot {
        title: "Connections that ended",
        unit: "connections per hour",
        value: |hour| hour.connections as f64,
    },
    Plot {
        title: "Retransmissions of these",
        unit: "segments per hour",
        value: |hour| hour.retransmissions,
    },
    Plot { title: "Marks of these", unit: "marks per hour", value: |hour| hour.marks },
];

impl Hour {
    fn goodput_mbit_per_s(&self) -> f64 {
        self.acked_bytes * 8.0 / 1e6 / HOUR_S as f64
    }
}

const HEAD: &str = "\
<!DOCTYPE html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>vcc report</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8885; white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: .5rem; }
.bar { display: flex; height: 1.6rem; border-radius: .3rem; overflow: hidden; margin: .4rem 0; }
.bar span { overflow: hidden; padding: 0 .4rem; color: #fff; font-size: .85rem; line-height: 1.6rem; white-space: nowrap; }
svg { width: 100%; height: auto; font-family: inherit; }
@media (prefers-color-scheme: dark) {
  svg .text, svg .label { fill: #ddd; }
  svg .grid { stroke: #333; }
}
</style>
";

/// The colours of limits in a bar, in the order of their shares.
const COLOURS: [&str; 6] = ["#0072b2", "#b34d00", "#007a5a", "#9a4f7e", "#8a6300", "#555555"];

pub fn html(report: &Report) -> String {
    let mut page = HEAD.to_owned();
    let (first, last) = report.hours();
    let _ = writeln!(page, "<h1>vcc report</h1>\n<p>{}</p>", report.range());
    page += "<table><tr><th>Name<th>Connections<th>Acknowledged<th>Marks<th>Retransmitted<th>Of \
             segments<th>SRTT, median<th>99 %<th>Fabric delay, median<th>99 %<th>Guest delay, median<th>99 %</tr>\n";
    report.groups.iter().for_each(|sums| cells(&mut page, &sums.cells(), 1));
    page += "</table>\n";
    for sums in &report.groups {
        let _ = writeln!(page, "<h2>{}</h2>", escaped(&sums.name));
        limits(&mut page, sums);
        delays(&mut page, sums);
        page += "<div class=\"plots\">\n";
        for plot in &PLOTS {
            page += &drawn(sums, plot, (first, last));
        }
        page += "</div>\n";
    }
    if !report.worst.is_empty() {
        page += "<h2>The connections that lost most</h2>\n<table><tr><th>Group<th \
                 class=\"text\">Guest<th class=\"text\">Peer<th>Acknowledged<th>Lasted<th>Retransmitted<th>Dropped by \
                 vcc<th>Marks<th>SRTT</tr>\n";
        for worst in &report.worst {
            cells(&mut page, &worst.cells(), 3);
        }
        page += "</table>\n";
    }
    page
}

/// The first `texts` cells are text.
fn cells(page: &mut String, values: &[String], texts: usize) {
    page.push_str("<tr>");
    for (place, value) in values.iter().enumerate() {
        let class = if place < texts { " class=\"text\"" } else { "" };
        let _ = write!(page, "<td{class}>{}", escaped(value));
    }
    page.push_str("</tr>\n");
}

fn delays(page: &mut String, sums: &Sums) {
    page.push_str(
        "<p>Delays. Each connection counts once, with its own average; the longest is a single wait:</p>\n\
         <table><tr><th>Delay<th>Median of connections<th>99 % of connections<th>Longest</tr>\n",
    );
    for row in sums.delays() {
        cells(page, &row, 1);
    }
    page.push_str("</table>\n");
}

/// What limited the connections, as a bar.
fn limits(page: &mut String, sums: &Sums) {
    let mut shares: Vec<(&String, f64)> =
        sums.limited_by.iter().map(|(name, share)| (name, *share)).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    if shares.is_empty() {
        page.push_str("<p>No connection lasted long enough to see what limited it.</p>\n");
        return;
    }
    page.push_str("<p>What limited its connections, by time:</p>\n<div class=\"bar\">");
    for (place, (name, share)) in shares.into_iter().enumerate() {
        let text = escaped(&format!("{name} {}", percent(Some(share))));
        let _ = write!(
            page,
            "<span style=\"width:{:.2}%;background:{}\" title=\"{text}\">{text}</span>",
            share * 100.0,
            COLOURS[place % COLOURS.len()]
        );
    }
    page.push_str("</div>\n");
}

/// Over the hours from the first to the last: one without connections is 0.
fn drawn(sums: &Sums, plot: &Plot, (first, last): (i64, i64)) -> String {
    let Plot { title, unit, value } = *plot;
    let hours = (first..=last).step_by(HOUR_S as usize);
    let points = hours.map(|hour| {
        let before = (hour - last) as f64 / HOUR_S as f64;
        (before, sums.hours.get(&hour).map_or(0.0, value))
    });
    let line = Line { name: sums.name.clone(), points: points.collect() };
    let panel = LinePanel { title: title.to_owned(), lines: vec![line] };
    let names = lines::names(std::slice::from_ref(&panel));
    let y = Axis::from_zero(unit, panel.lines[0].points.iter().map(|point| point.1));
    let mut canvas = Canvas::inline(WIDTH, HEIGHT, &format!("{title} of {}", sums.name));
    let x = format!("hours from {}", time(last));
    lines::draw(&mut canvas, AREA, (&x, Scale::Linear), &y, &panel, &names);
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::super::groups::Groups;
    use super::super::groups::tests::record;
    use super::*;

    #[test]
    fn a_page_has_plots_and_escapes_names() {
        let mut groups = Groups::new(2);
        let mut hostile = record("<b>", 300_000);
        hostile.limited_by.insert("<b>".to_owned(), 0.1);
        groups.add("<b>".to_owned(), hostile);
        groups.add("acme".to_owned(), record("acme", 100_000));
        let page = html(&groups.report());
        assert!(page.contains("<h2>&lt;b&gt;</h2>") && !page.contains("<b>"), "{page}");
        assert_eq!(page.matches("<svg ").count(), 2 * PLOTS.len());
        assert!(page.contains("underlay 75.00 %"), "{page}");
        assert!(page.contains("from 1970-01-01 02:00 UTC to 1970-01-01 03:00 UTC"), "{page}");
        assert!(!page.contains("http"), "it loads nothing");
    }
}
