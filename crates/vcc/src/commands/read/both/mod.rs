//! `vcc read --both`: two captures, on the two sides of a port.

mod columns;
mod document;
mod text;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use vcc_capture::Problem;
use vcc_capture::both::{ByFace, Comparison, Face, Outcome, read_in_step};
use vcc_command::output;

use super::file::Input;
use super::{Arguments, UNREAD, input, is_guest};
pub use columns::help;

/// The two sides differ where vcc changes nothing.
const CHANGED: u8 = 1;

/// What both files have shown.
struct Report {
    files: ByFace<String>,
    /// The files, as offsets are within them.
    places: ByFace<String>,
    /// With their offsets.
    problems: ByFace<Vec<String>>,
    outcome: Outcome,
}

pub fn run(
    arguments: &Arguments,
    guest_side: &Path,
    fabric_side: &Path,
) -> anyhow::Result<ExitCode> {
    if guest_side == fabric_side && guest_side.as_os_str() == "-" {
        bail!("both files are the standard input: name a file for one of them");
    }
    let (guest, fabric) = (input(guest_side, 0)?, input(fabric_side, 1)?);
    let places = ByFace { guest: place(&guest), fabric: place(&fabric) };
    let files = ByFace { guest: guest.name, fabric: fabric.name };
    let readers = ByFace { guest: guest.content.reader, fabric: fabric.content.reader };
    let mut problems = ByFace::<Vec<String>>::default();
    let mut complain = |face: Face, problem: Problem| {
        output::complain(&format!("{}, {problem}", places[face]));
        problems[face].push(problem.to_string());
    };
    let mut comparison = Comparison::new(arguments.max_flows as usize, is_guest(arguments));
    read_in_step(readers, &mut comparison, &mut complain);
    let report = Report { files, places, problems, outcome: comparison.end() };
    if arguments.json {
        output::say_json(&document::Document::new(&report))?;
    } else {
        output::say(&columns::table(&report.outcome.connections, arguments.wide));
        output::say(&text::text(&report));
    }
    Ok(report.exit_code())
}

/// Offsets in a compressed file are those of its content.
fn place(input: &Input) -> String {
    format!("{}{}", input.name, if input.content.is_compressed { " (decompressed)" } else { "" })
}

impl Report {
    fn exit_code(&self) -> ExitCode {
        let is_damaged = Face::BOTH.iter().any(|face| !self.problems[*face].is_empty());
        match (self.outcome.total.errors, is_damaged) {
            (0, false) => ExitCode::SUCCESS,
            (0, true) => ExitCode::from(UNREAD),
            _ => ExitCode::from(CHANGED),
        }
    }
}
