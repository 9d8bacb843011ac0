//! `vcc read --both`: two captures, on the two sides of a port, or one recording of both.

mod columns;
mod document;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use vcc_capture::Problem;
use vcc_capture::both::{
    ByFace, Comparison, Face, Outcome, PortSide, read_in_step, recorded_devices,
};
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

/// `files`: one of each side, or a recording.
pub fn run(arguments: &Arguments, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let (guest_side, fabric_side, device) = match files {
        [guest_side, fabric_side] => {
            if guest_side == fabric_side && guest_side.as_os_str() == "-" {
                bail!("both files are the standard input: name a file for one of them");
            }
            (guest_side, fabric_side, None)
        }
        [recording] => (recording, recording, Some(recorded_device(recording, arguments)?)),
        _ => bail!("--both takes one file or two, and {} are given", files.len()),
    };
    if let (None, Some(device)) = (&device, &arguments.device) {
        bail!("--device {device} names a port of a recording, and two files are given");
    }
    let (guest, fabric) = (input(guest_side, 0)?, input(fabric_side, 1)?);
    let places = ByFace { guest: place(&guest), fabric: place(&fabric) };
    let name = |input: &Input, face| match &device {
        Some(device) => format!("{}, {}", input.name, PortSide { device, face }.name()),
        None => input.name.clone(),
    };
    let files = ByFace { guest: name(&guest, Face::Guest), fabric: name(&fabric, Face::Fabric) };
    let readers = ByFace { guest: guest.content.reader, fabric: fabric.content.reader };
    let mut problems = ByFace::<Vec<String>>::default();
    let mut complain = |face: Face, problem: Problem| {
        output::complain(&format!("{}, {problem}", places[face]));
        problems[face].push(problem.to_string());
    };
    let mut comparison = Comparison::new(arguments.max_flows as usize, is_guest(arguments));
    read_in_step(readers, device.as_deref(), &mut comparison, &mut complain);
    let report = Report { files, places, problems, outcome: comparison.end() };
    if arguments.json {
        output::say_json(&document::Document::new(&report))?;
    } else {
        output::say(&columns::table(&report.outcome.connections, arguments.wide));
        output::say(&text::text(&report));
    }
    Ok(report.exit_code())
}

/// The port of a recording that is compared.
fn recorded_device(path: &Path, arguments: &Arguments) -> anyhow::Result<String> {
    let name = path.display();
    if path.as_os_str() == "-" {
        bail!(
            "both sides of a recording are read at once, which the standard input is not: name a file"
        );
    }
    let reader = input(path, 0)?.content.reader;
    let devices = recorded_devices(reader).map_err(|problem| anyhow!("{name}, {problem}"))?;
    match (&devices[..], &arguments.device) {
        ([], _) => bail!(
            "{name} does not have both sides of a port: name two files, or record with `vcc record`"
        ),
        (_, Some(device)) if devices.contains(device) => Ok(device.clone()),
        (_, Some(device)) => bail!("{name} has no port {device}, but {}", devices.join(", ")),
        ([device], None) => Ok(device.clone()),
        (_, None) => {
            bail!("{name} has several ports: name one by --device: {}", devices.join(", "))
        }
    }
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
