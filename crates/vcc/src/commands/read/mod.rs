mod both;
mod columns;
mod detail;
mod file;
mod follow;
mod guesses;
mod guest;
mod hosts;
mod order;
mod picture;
mod progress;
mod report;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use vcc_capture::{Content, Mac, Passed, Replay, Treatment};
use vcc_command::{output, seconds};
use vcc_engine::{Params, Underlay};
use vcc_policy::Policy;
use vcc_view::Filter;

use super::flows::table;
use super::flows::watch::Screen;
use super::policy;
use super::selection::PeerArguments;
use crate::interrupt;
use columns::{MORE, Row};
use file::{Input, Outcome};
use follow::Growing;
use guest::Guest;
use order::Order;
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
///
/// With --both, two captures from the two sides of a port, or one of `vcc record`, show what vcc has
/// changed, segment by segment.
/// The exit code is 1 if anything differs that vcc leaves alone, such as a byte of payload.
#[derive(clap::Args)]
#[command(after_long_help = help())]
pub struct Arguments {
    /// Captures; - is the standard input
    #[arg(value_name = "FILE", required_unless_present = "both")]
    files: Vec<PathBuf>,

    /// Compare two captures of the same connections: the first between the guest and its port, the second
    /// on the fabric's side; or a recording that has both sides
    #[arg(long, num_args = 1..=2, value_names = ["FILE", "FABRIC_SIDE"],
          conflicts_with_all = ["files", "each_end", "underlay", "policy", "peer", "stage", "ecn", "with", "since", "sort",
                                "reverse", "top", "explain", "hosts", "follow", "plot"])]
    both: Vec<PathBuf>,

    /// The guests, at ADDRESS, ADDRESS:PORT, :PORT, in the network ADDRESS/BITS, or at the Ethernet address MAC [default: the end that
    /// opens a connection is its guest]
    #[arg(long, value_name = "END", value_delimiter = ',')]
    guest: Vec<Guest>,

    /// Show each connection twice: with each of its ends as the guest. This takes twice the time
    #[arg(long)]
    each_end: bool,

    /// The congestion control whose window is computed
    #[arg(long, value_name = "NAME", default_value_t)]
    underlay: Underlay,

    /// Treat each connection by the rule of this policy that matches it
    #[arg(long, value_name = "FILE", conflicts_with = "underlay")]
    policy: Option<PathBuf>,

    /// With --policy: the guests' port, from which their tenant follows. With --both: the port of a
    /// recording that is compared
    #[arg(long, value_name = "DEV")]
    device: Option<String>,

    /// The guests' tenant
    #[arg(long, value_name = "NAME", requires = "policy", conflicts_with = "device")]
    tenant: Option<String>,

    /// Keep at most N connections of a file, and count further ones
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_flows: u32,

    #[command(flatten)]
    peers: Box<PeerArguments>,

    /// Connections with packets SECONDS or more after the file's first
    #[arg(long, value_name = "SECONDS", value_parser = seconds::from_zero, help_heading = "Which connections")]
    since: Option<Duration>,

    #[command(flatten)]
    order: Box<Order>,

    /// Show all columns
    #[arg(long, conflicts_with_all = ["json", "explain"], help_heading = "How they are shown")]
    wide: bool,

    /// Show all details of each connection, instead of a row
    #[arg(long, conflicts_with = "json", help_heading = "How they are shown")]
    explain: bool,

    /// Show the connections of each pair of hosts together, the pair with the most bytes first
    #[arg(long, conflicts_with_all = ["wide", "explain", "sort", "reverse"], help_heading = "How they are shown")]
    hosts: bool,

    /// Keep reading a file that is still being written, and show the table every second, until Ctrl-C
    #[arg(long, conflicts_with_all = ["plot", "explain"], help_heading = "How they are shown")]
    follow: bool,

    /// Draw one connection as SVG into FILE: sequence numbers, windows, marks and round-trip times. --guest
    /// and --peer must select exactly one
    #[arg(long, value_name = "FILE", help_heading = "How they are shown")]
    plot: Option<PathBuf>,

    /// Print files and connections as JSON
    #[arg(long, help_heading = "How they are shown")]
    json: bool,
}

fn help() -> String {
    format!("{}\n\n{}", columns::help(), both::help())
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.both.is_empty() {
        return both::run(arguments, &arguments.both);
    }
    if let (Some(device), None) = (&arguments.device, &arguments.policy) {
        bail!("--device {device} chooses a tenant of a policy: add --policy FILE, or remove it");
    }
    let policy = arguments.policy.as_deref().map(policy::read).transpose()?;
    let treatment = treatment(arguments, policy.as_ref())?;
    let view = View { arguments, policy: policy.as_ref(), filter: arguments.peers.filter() };
    let begin = |path: &PathBuf| Picture::begin(path, &arguments.guest, &view.filter.peer);
    let mut picture = arguments.plot.as_ref().map(begin).transpose()?;
    let (files, rows) = match arguments.follow {
        true => follow(&view, &treatment)?,
        false => read_all(arguments, &treatment, picture.as_mut())?,
    };
    if !arguments.follow || arguments.json {
        output::say(&view.text(&files, rows)?);
    }
    picture.map_or(Ok(()), |picture| picture.end(arguments.json))?;
    let is_whole = files.iter().all(|file| file.problems.is_empty());
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(UNREAD) })
}

fn read_all(
    arguments: &Arguments,
    treatment: &Treatment,
    mut picture: Option<&mut Picture>,
) -> anyhow::Result<(Vec<Outcome>, Vec<Row>)> {
    let mut files = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for (index, path) in arguments.files.iter().enumerate() {
        let mut observe = |passed: &Passed| {
            if let Some(picture) = &mut picture {
                picture.note(index, passed, treatment.params_of(passed.state));
            }
        };
        let input = input(path, index)?;
        let replay = replay(arguments, treatment);
        let (outcome, more) = file::read(input, replay, treatment, &mut observe);
        files.push(outcome);
        rows.extend(more);
    }
    Ok((files, rows))
}

fn follow(view: &View, treatment: &Treatment) -> anyhow::Result<(Vec<Outcome>, Vec<Row>)> {
    let arguments = view.arguments;
    let [path] = &arguments.files[..] else {
        bail!("--follow reads one file, and {} are given", arguments.files.len());
    };
    interrupt::listen()?;
    let file = open(path, |file| Box::new(Growing(file)))?;
    let name = path.display().to_string();
    let is_terminal = io::stdout().is_terminal();
    let mut screen = Screen::default();
    let mut failure = None;
    let show = |outcome: &Outcome, rows: &[Row]| {
        if arguments.json {
            return true;
        }
        match view.text(std::slice::from_ref(outcome), rows.to_vec()) {
            Ok(text) if is_terminal => output::draw(&screen.redraw(&text)),
            Ok(text) => output::still_heard(&(text + "\n")),
            Err(error) => {
                failure = Some(error);
                false
            }
        }
    };
    let (outcome, rows) = follow::read(&name, file, replay(arguments, treatment), treatment, show);
    for problem in &outcome.problems {
        output::complain(&format!("{}, {problem}", outcome.name));
    }
    failure.map_or(Ok((vec![outcome], rows)), Err)
}

/// How connections are shown.
struct View<'a> {
    arguments: &'a Arguments,
    policy: Option<&'a Policy>,
    filter: Filter,
}

impl View<'_> {
    fn text(&self, files: &[Outcome], mut rows: Vec<Row>) -> anyhow::Result<String> {
        let arguments = self.arguments;
        let since_ns = arguments.since.unwrap_or_default().as_nanos();
        let is_late = |row: &Row| u128::from(row.life.began_ns + row.life.lasted_ns) >= since_ns;
        rows.retain(|row| self.filter.admits(&row.flow) && is_late(row));
        let noun = if arguments.each_end { "end" } else { "connection" };
        let by_rule = self.policy.map(|policy| report::rules(policy, &rows, noun));
        let mut pairs = arguments.hosts.then(|| hosts::pairs(&rows));
        if let Some(pairs) = &mut pairs {
            arguments.order.part.keep_first(pairs);
        }
        rows.sort_by(|one, other| arguments.order.compare(one, other));
        arguments.order.part.keep_first(&mut rows);
        if arguments.json {
            let flows = pairs.is_none().then_some(&rows[..]);
            let document = report::Document { files, flows, hosts: pairs.as_deref() };
            return Ok(serde_json::to_string_pretty(&document)? + "\n");
        }
        let mut text = match &pairs {
            Some(pairs) => hosts::table(pairs),
            None if arguments.explain => {
                let texts: Vec<String> = rows.iter().map(detail::text).collect();
                texts.join("\n")
            }
            None => table::table_with(&rows, |row| &row.flow, MORE, arguments.wide),
        };
        text += &report::files(files);
        text += &by_rule.unwrap_or_default();
        if !rows.is_empty() {
            let underlay = self.policy.is_none().then_some(arguments.underlay);
            text += &report::caveat(underlay);
        }
        Ok(text)
    }
}

/// By the policy, or with one underlay for all.
fn treatment(arguments: &Arguments, policy: Option<&Policy>) -> anyhow::Result<Treatment> {
    let Some(policy) = policy else {
        let mut params = Params::default();
        params.0.underlay = arguments.underlay.number();
        return Ok(Treatment::from_params(params));
    };
    let port = match &arguments.device {
        Some(device) => policy::port_at(policy, device)?.affiliation(),
        None => arguments.tenant.as_deref().into(),
    };
    Ok(Treatment::from_rules(policy::rules_of(policy, port)))
}

fn replay(arguments: &Arguments, treatment: &Treatment) -> Replay {
    let replay = Replay::new(treatment.clone(), arguments.max_flows as usize, is_guest(arguments));
    if arguments.each_end { replay.each_end() } else { replay }
}

/// None: the user has named no guest.
fn is_guest(arguments: &Arguments) -> Option<Box<dyn Fn(SocketAddr, Mac) -> bool + Send>> {
    let guests = arguments.guest.clone();
    (!guests.is_empty()).then(|| -> Box<dyn Fn(SocketAddr, Mac) -> bool + Send> {
        Box::new(move |end, mac| guests.iter().any(|guest| guest.is(end, mac)))
    })
}

fn input(path: &Path, index: usize) -> anyhow::Result<Input<'static>> {
    let name = path.display().to_string();
    let file = open(path, |file| Box::new(Progress::new(path, file)))?;
    let content = Content::from_file(file).with_context(|| format!("cannot read {name}"))?;
    Ok(Input { name, index, content })
}

/// `-` is the standard input.
fn open(
    path: &Path,
    wrap: impl FnOnce(File) -> Box<dyn Read + Send>,
) -> anyhow::Result<Box<dyn Read + Send>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let opened = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(wrap(opened))
}
