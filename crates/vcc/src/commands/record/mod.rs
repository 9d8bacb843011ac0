mod file;
mod wanted;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::ValueEnum;
use vcc_command::{output, seconds};
use vcc_port::{Port, RecordedSide, Recorder, RecorderOptions};
use vcc_view::End;

use super::ports_of;
use crate::interrupt;
use file::RecordingFile;
use wanted::Wanted;

/// Record the packets at ports into a capture, on both sides of vcc
///
/// The capture is a pcapng file with two interfaces for each port. On the guest side, packets are as the
/// guest sends and gets them; on the fabric side, as the fabric gets and sends them. `vcc read` and other
/// programs read it, and `vcc read --both FILE` shows what vcc has changed, segment by segment.
///
/// It ends by Ctrl-C, with its last port, or by --count, --duration or --max-mib. Packets that come faster than
/// they can be written are counted; the guests' traffic does not wait for them.
#[derive(clap::Args)]
pub struct Arguments {
    /// The ports [default: all of this network namespace]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    /// Write to FILE, which its owner alone may read; - is stdout, as without the option
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The side of vcc
    #[arg(long, value_name = "SIDE", default_value = "both")]
    side: Sides,

    /// Keep at most BYTES of each packet
    #[arg(long, value_name = "BYTES", default_value_t = Recorder::KEPT_MAX_BYTES,
          value_parser = clap::value_parser!(u32).range(96..=i64::from(Recorder::KEPT_MAX_BYTES)))]
    snaplen: u32,

    /// Room for packets that are not written yet: a power of two
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = buffer)]
    buffer_mib: u32,

    /// End after N packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds::from_a_hundredth)]
    duration: Option<Duration>,

    /// End once the file has MIB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    max_mib: Option<u64>,

    /// TCP of guests at ADDRESS, ADDRESS:PORT, :PORT, or in the network ADDRESS/BITS
    #[arg(long, value_name = "END", value_delimiter = ',', help_heading = "Which packets")]
    guest: Vec<End>,

    /// TCP of peers at ADDRESS, ADDRESS:PORT, :PORT, or in the network ADDRESS/BITS
    #[arg(long, value_name = "END", value_delimiter = ',', help_heading = "Which packets")]
    peer: Vec<End>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sides {
    /// Between the guest and vcc
    Guest,
    /// Between vcc and the fabric
    Fabric,
    /// Both
    Both,
}

impl Sides {
    fn list(self) -> Vec<RecordedSide> {
        match self {
            Self::Guest => vec![RecordedSide::Guest],
            Self::Fabric => vec![RecordedSide::Fabric],
            Self::Both => RecordedSide::BOTH.to_vec(),
        }
    }
}

/// The interval at which the end of a port is noticed without a packet.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let ports = ports(&arguments.devices)?;
    let devices: Vec<&str> = ports.iter().map(Port::device).collect();
    let sides = arguments.side.list();
    let options = RecorderOptions {
        sides: sides.clone(),
        kept_max_bytes: arguments.snaplen,
        buffer_bytes: arguments.buffer_mib << 20,
    };
    let max_bytes = arguments.max_mib.map(|mib| mib << 20);
    interrupt::listen()?;
    let path = arguments.output.as_deref().filter(|path| path.as_os_str() != "-");
    RecordingFile::require(path)?;
    let mut recorder = Recorder::start(&ports, &options)?;
    // A recording that is there stays if this one cannot begin.
    let mut file = RecordingFile::open(path, max_bytes)?;
    let result = file
        .begin(&devices, &sides, arguments.snaplen)
        .and_then(|()| record(&ports, &mut recorder, &mut file, arguments));
    let lost = file.note_lost(|port, side| recorder.lost(port, side))?;
    let result = result.and_then(|()| file.end());
    if let Some(path) = path {
        output::say(&format!("{}: {}\n", path.display(), file.summary(&devices)));
    }
    if lost > 0 {
        output::complain(&missing(lost));
    }
    match result {
        Err(error) if file.has_no_reader(&error) => {}
        result => result?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Those whose devices are in this network namespace, each once.
fn ports(devices: &[String]) -> anyhow::Result<Vec<Port>> {
    let devices: Vec<String> =
        devices.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    let mut ports = ports_of(&devices, "record at the tap, by tcpdump or `dumpcap`")?;
    let mut elsewhere = Vec::new();
    for port in std::mem::take(&mut ports) {
        match port.is_here()? {
            true => ports.push(port),
            false => elsewhere.push(port.device().to_owned()),
        }
    }
    match (ports.is_empty(), elsewhere.is_empty()) {
        (false, _) => Ok(ports),
        (true, true) => bail!("vcc is attached to no device in the kernel"),
        (true, false) => bail!(
            "all ports are in other network namespaces ({}): use `nsenter --net=/run/netns/NAME vcc record`",
            elsewhere.join(", ")
        ),
    }
}

/// The ports of a recording that have not gone.
struct Remaining<'a> {
    ports: &'a [Port],
    remains: Vec<bool>,
    looked: Instant,
}

impl<'a> Remaining<'a> {
    fn new(ports: &'a [Port]) -> Self {
        Self { ports, remains: vec![true; ports.len()], looked: Instant::now() }
    }

    /// Stops the recording of ports that have gone, from time to time. False if none remains.
    ///
    /// Without its port, a device still passes packets, and both sides show the same.
    fn stop_gone(&mut self, recorder: &mut Recorder) -> Result<bool, vcc_port::Error> {
        if self.looked.elapsed() < LOOK {
            return Ok(true);
        }
        self.looked = Instant::now();
        for (place, port) in self.ports.iter().enumerate() {
            if !self.remains[place] || recorder.is_attached(place)? && port.is_attached()? {
                continue;
            }
            self.remains[place] = false;
            recorder.stop(place);
            output::complain(&format!(
                "vcc was detached from {0}, or {0} has gone: its recording has ended",
                port.device()
            ));
        }
        Ok(self.remains.contains(&true))
    }
}

fn record(
    ports: &[Port],
    recorder: &mut Recorder,
    file: &mut RecordingFile,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    let wanted = Wanted { guests: &arguments.guest, peers: &arguments.peer };
    let until = arguments.duration.and_then(|duration| Instant::now().checked_add(duration));
    let mut remaining = Remaining::new(ports);
    let mut has_ended = false;
    loop {
        let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
        if !has_ended && (left.is_zero() || interrupt::came() || !remaining.stop_gone(recorder)?) {
            has_ended = true;
            // What was recorded by now is still written.
            recorder.stop_all();
        }
        let mut packet = recorder.next(Duration::ZERO)?;
        if packet.is_none() {
            if has_ended {
                return Ok(());
            }
            // Flushed before waiting: a reader of the output has all packets so far.
            file.flush()?;
            packet = recorder.next(left.min(LOOK))?;
        }
        let Some(mut packet) = packet else { continue };
        file.note_received(&packet);
        if wanted.admits(&mut packet) {
            file.packet(&packet)?;
        }
        if arguments.count.is_some_and(|count| file.packets() >= count) || file.is_full() {
            return Ok(());
        }
    }
}

fn missing(lost: u64) -> String {
    format!(
        "{lost} packets of all that passed are missing: they came faster than they could be read. A \
         smaller --snaplen, one --side or a larger --buffer-mib keeps more"
    )
}

fn buffer(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|mib: &u32| mib.is_power_of_two() && *mib <= 1024)
        .ok_or_else(|| "must be a power of two of at most 1024".to_owned())
}
