mod columns;
mod detail;
mod file;
mod hosts;
mod picture;
mod progress;
mod report;

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use vcc_capture::{Content, Passed, Replay, Treatment};
use vcc_command::{output, seconds};
use vcc_engine::{Params, Underlay};
use vcc_policy::Policy;
use vcc_view::End;

use super::flows::table;
use super::policy;
use super::selection::{OrderArguments, PeerArguments};
use columns::{MORE, Row};
use file::{Input, Outcome};
use picture::Picture;
use progress::Progress;

/// A file could not be read to its end.
const UNREAD: u8 = 3;

/// Show the connections in captures, and what an underlay would have done with them
///
/// Reads captures of tcpdump, Wireshark and others in the formats pcap and pcapng, and passes their
/// packets through a port in shadow mode, which computes the underlay's window and changes nothing. This
/// needs no permission. A capture from the guest's host has the round-trip times that a port there
/// would have measured.
///
/// How a guest would have answered the underlay's window is not known from a capture. What can be read is
/// shown even if a file is damaged; then the exit code is 3.
#[derive(clap::Args)]
#[command(after_long_help = columns::help())]
pub struct Arguments {
    /// Captures; - is the standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The guests, at ADDRESS, ADDRESS:PORT, :PORT, or in the network ADDRESS/BITS [default: the end that
    /// opens a connection is its guest]
    #[arg(long, value_name = "END", value_delimiter = ',')]
    guest: Vec<End>,

    /// The congestion control whose window is computed
    #[arg(long, value_name = "NAME", default_value_t)]
    underlay: Underlay,

    /// Treat each connection by the rule of this policy that it meets
    #[arg(long, value_name = "FILE", conflicts_with = "underlay")]
    policy: Option<PathBuf>,

    /// The guests' port, from which their tenant follows
    #[arg(long, value_name = "DEV", requires = "policy")]
    device: Option<String>,

    /// The guests' tenant
    #[arg(long, value_name = "NAME", requires = "policy", conflicts_with = "device")]
    tenant: Option<String>,

    /// Connections of a file that are kept; further ones are counted
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_flows: u32,

    #[command(flatten)]
    peers: Box<PeerArguments>,

    /// Connections with packets later than SECONDS after the file's first
    #[arg(long, value_name = "SECONDS", value_parser = seconds::from_zero, help_heading = "Which connections")]
    since: Option<Duration>,

    #[command(flatten)]
    order: OrderArguments,

    /// Show all columns
    #[arg(long, conflicts_with_all = ["json", "explain"], help_heading = "How they are shown")]
    wide: bool,

    /// Show all that is known of each connection, below one another
    #[arg(long, conflicts_with = "json", help_heading = "How they are shown")]
    explain: bool,

    /// Show the connections of each pair of hosts together
    #[arg(long, conflicts_with_all = ["wide", "explain"], help_heading = "How they are shown")]
    hosts: bool,

    /// Draw the one connection that --guest and --peer leave to FILE, as SVG: sequence numbers, windows,
    /// marks and round-trip times
    #[arg(long, value_name = "FILE", help_heading = "How they are shown")]
    plot: Option<PathBuf>,

    /// Print files and connections as JSON
    #[arg(long, help_heading = "How they are shown")]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = arguments.policy.as_deref().map(policy::read).transpose()?;
    let treatment = treatment(arguments, policy.as_ref())?;
    let filter = arguments.peers.filter();
    let begin = |path: &PathBuf| Picture::begin(path, &arguments.guest, &filter.peer);
    let mut picture = arguments.plot.as_ref().map(begin).transpose()?;
    let mut files = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for (index, path) in arguments.files.iter().enumerate() {
        let mut observe = |passed: &Passed| {
            if let Some(picture) = &mut picture {
                picture.note(index, passed, treatment.params_of(passed.state));
            }
        };
        let (outcome, more) = read(arguments, path, index, &treatment, &mut observe)?;
        files.push(outcome);
        rows.extend(more);
    }
    let since_ns = arguments.since.unwrap_or_default().as_nanos();
    rows.retain(|row| {
        filter.admits(&row.flow) && u128::from(row.life.began_ns + row.life.lasted_ns) >= since_ns
    });
    let sort = arguments.order.sort();
    rows.sort_by(|one, other| sort.compare(&one.flow, &other.flow));
    arguments.order.keep_first(&mut rows);
    let pairs = arguments.hosts.then(|| hosts::pairs(&rows));
    if arguments.json {
        let flows = pairs.is_none().then_some(&rows[..]);
        output::say_json(&report::Document { files: &files, flows, hosts: pairs.as_deref() })?;
    } else {
        if let Some(pairs) = &pairs {
            output::say(&hosts::table(pairs));
        } else if arguments.explain {
            let texts: Vec<String> = rows.iter().map(detail::text).collect();
            output::say(&texts.join("\n"));
        } else {
            output::say(&table::table_with(&rows, |row| &row.flow, MORE, arguments.wide));
        }
        output::say(&report::files(&files));
        if let Some(policy) = &policy {
            output::say(&report::rules(policy, &rows));
        }
        if !rows.is_empty() {
            let underlay = policy.is_none().then_some(arguments.underlay);
            output::say(&report::caveat(underlay));
        }
    }
    if let Some(picture) = &picture {
        picture.end()?;
    }
    let is_whole = files.iter().all(|file| file.problems.is_empty());
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(UNREAD) })
}

/// By the policy, or with one underlay for all.
fn treatment(arguments: &Arguments, policy: Option<&Policy>) -> anyhow::Result<Treatment> {
    let Some(policy) = policy else {
        let mut params = Params::default();
        params.0.underlay = arguments.underlay.number();
        return Ok(Treatment::from_params(params));
    };
    let tenant = match &arguments.device {
        Some(device) => policy::tenant_of(policy, device)?,
        None => arguments.tenant.clone(),
    };
    Ok(Treatment::from_rules(policy::rules_of(policy, tenant.as_deref())))
}

fn read(
    arguments: &Arguments,
    path: &Path,
    index: usize,
    treatment: &Treatment,
    observe: &mut dyn FnMut(&Passed),
) -> anyhow::Result<(Outcome, Vec<Row>)> {
    let guests = arguments.guest.clone();
    let is_guest = (!guests.is_empty()).then(|| -> Box<dyn Fn(SocketAddr) -> bool> {
        Box::new(move |end| guests.iter().any(|guest| guest.matches(end)))
    });
    let file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            let opened = File::open(path);
            let file = opened.with_context(|| format!("cannot open {}", path.display()))?;
            Box::new(Progress::new(path, file))
        }
    };
    let name = path.display().to_string();
    let content = Content::from_file(file).with_context(|| format!("cannot read {name}"))?;
    let replay = Replay::new(treatment.clone(), arguments.max_flows as usize, is_guest);
    Ok(file::read(Input { name, index, content }, replay, treatment, observe))
}
