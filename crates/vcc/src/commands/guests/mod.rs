mod watching;

use std::process::ExitCode;
use std::time::Duration;

use vcc_command::output;
use vcc_command::seconds;
use vcc_command::table::{Align, Table};
use vcc_view::guests::{self, GuestView};

use super::{sources_of, why_none};
use crate::interrupt;
use watching::Watching;

/// Identify the guests' own congestion control and ECN
///
/// Watches the connections at ports for a while, and infers the class of the guest's congestion control
/// from its response to losses and marks and from its growth. Where vcc enforces windows, the guest's
/// own congestion control is not visible: attach new guests in shadow mode first. docs/guests.md explains
/// the classes, and how often the guesses are right.
///
/// Also reports whether a guest is slow because of the fabric, or because the guest itself is late; for a
/// virtual machine of this host, whether its CPU did not run, was busy, or was idle.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports to watch [default: all]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    /// Watch for this time; Ctrl-C ends it sooner
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds::from_a_tenth)]
    seconds: Duration,

    /// Print the guests as JSON, with each of their connections
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    let mut ports = sources_of(&arguments.devices)?;
    if arguments.devices.is_empty() {
        // A guest's devices have one table, which is watched once.
        ports.retain(|port| !port.is_shown_elsewhere());
    }
    let mut watching = Watching::begin(ports);
    watching.watch(arguments.seconds)?;
    let seen = watching.end()?;
    if seen.lost > 0 {
        output::complain(&format!(
            "{} ACKs were lost because the recording was full: the guesses are based on less",
            seen.lost
        ));
    }
    if seen.unwatched > 0 {
        output::complain(&format!(
            "{} connections were not watched: there is room for 1000 per port",
            seen.unwatched
        ));
    }
    for port in &seen.ended {
        output::complain(&format!("{port} ended meanwhile: its guest is left out"));
    }
    seen.problems.iter().for_each(|problem| output::complain(problem));
    let guests = guests::guests(&seen.connections);
    if arguments.json {
        output::say_json(&guests)?;
    } else if guests.is_empty() {
        output::say(&format!("{}\n", why_none(&arguments.devices, 0)?));
    } else {
        output::say(&table(&guests));
        output::say(&delays(&guests));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(guests: &[GuestView]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("PORT", Left),
        ("GUEST", Left),
        ("CONNECTIONS", Right),
        ("ECN", Left),
        ("OVERLAY", Left),
        ("CONFIDENCE", Right),
        ("TRANSLATE", Left),
        ("WHY", Left),
    ]);
    for guest in guests {
        let ecn: Vec<&str> = guest.ecn.iter().map(|ecn| ecn.name()).collect();
        table.row([
            guest.port.clone(),
            guest.guest.to_string(),
            guest.connections.to_string(),
            if ecn.is_empty() { "-".to_owned() } else { ecn.join(",") },
            guest.overlay.to_owned(),
            format!("{:.2}", guest.confidence),
            guest.translate.name().to_owned(),
            format!("{}; {}", guest.translate_why, guest.reasons.join("; ")),
        ]);
    }
    table.render()
}

/// A line for each guest whose delays were measured.
fn delays(guests: &[GuestView]) -> String {
    let line = |guest: &GuestView| {
        let text = guest.delayed_by_text.as_ref()?;
        Some(format!("{} {}: {text}\n", guest.port, guest.guest))
    };
    guests.iter().filter_map(line).collect()
}
