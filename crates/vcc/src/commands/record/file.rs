//! The file of a recording.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, bail};
use vcc_capture::both::Face;
use vcc_capture::{PortSide, Statistics, Way, Writer, Written};
use vcc_command::version;
use vcc_port::{RecordedPacket, RecordedSide};

const FAILED: &str = "cannot write the recording";

/// An interface for each side of each port, in which a packet is found by its port and side.
pub struct RecordingFile {
    writer: Writer<Counting<BufWriter<Box<dyn Write>>>>,
    interfaces: Vec<Interface>,
    max_bytes: Option<u64>,
    is_file: bool,
}

struct Interface {
    port: usize,
    side: RecordedSide,
    number: u32,
    packets: u64,
}

impl RecordingFile {
    /// Without a path, it is stdout.
    pub fn open(path: Option<&Path>, max_bytes: Option<u64>) -> anyhow::Result<Self> {
        let to: Box<dyn Write> = match path {
            Some(path) => Box::new(create(path)?),
            None if io::stdout().is_terminal() => {
                bail!("a capture is no text for a terminal: give --output FILE, or pipe it")
            }
            None => Box::new(io::stdout()),
        };
        let to = Counting { to: BufWriter::new(to), bytes: 0 };
        let writer = Writer::begin(to, &format!("vcc {}", version())).context(FAILED)?;
        Ok(Self { writer, interfaces: Vec::new(), max_bytes, is_file: path.is_some() })
    }

    pub fn begin(
        &mut self,
        devices: &[&str],
        sides: &[RecordedSide],
        kept_max_bytes: u32,
    ) -> anyhow::Result<()> {
        for (port, device) in devices.iter().enumerate() {
            for &side in sides {
                let name = PortSide { device, face: face(side) }.name();
                let description = match side {
                    RecordedSide::Guest => "between the guest and vcc",
                    RecordedSide::Fabric => "between vcc and the fabric",
                };
                let number = self.writer.interface(&name, description, kept_max_bytes);
                let number = number.context(FAILED)?;
                self.interfaces.push(Interface { port, side, number, packets: 0 });
            }
        }
        self.flush()
    }

    pub fn packet(&mut self, packet: &RecordedPacket) -> anyhow::Result<()> {
        let is_its = |it: &&mut Interface| (it.port, it.side) == (packet.port, packet.side);
        let interface = self.interfaces.iter_mut().find(is_its).context("no such interface")?;
        interface.packets += 1;
        let written = Written {
            interface: interface.number,
            time: packet.time,
            way: if packet.is_from_guest { Way::In } else { Way::Out },
            frame_bytes: packet.frame_bytes,
            frame: &packet.frame,
        };
        self.writer.packet(written).context(FAILED)
    }

    /// `lost`: for each interface, the packets that were not recorded.
    pub fn end(&mut self, lost: &[((usize, RecordedSide), u64)]) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for (interface, (_, lost)) in self.interfaces.iter().zip(lost) {
            let statistics = Statistics { received: interface.packets + lost, lost: *lost };
            self.writer.statistics(interface.number, now, statistics).context(FAILED)?;
        }
        self.flush()
    }

    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.writer.flush().context(FAILED)
    }

    pub fn packets(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.packets).sum()
    }

    pub fn is_full(&self) -> bool {
        self.max_bytes.is_some_and(|max| self.writer.get_ref().bytes >= max)
    }

    /// A closed pipe (`| head`) is no failure.
    pub fn has_no_reader(&self, error: &anyhow::Error) -> bool {
        let io = error.downcast_ref::<io::Error>();
        !self.is_file && io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub fn summary(&self, devices: &[&str]) -> String {
        let at = |interface: &Interface| {
            let side = PortSide { device: devices[interface.port], face: face(interface.side) };
            format!("{} at {}", interface.packets, side.name())
        };
        let parts: Vec<String> = self.interfaces.iter().map(at).collect();
        let bytes = self.writer.get_ref().bytes;
        format!("{} packets, {bytes} bytes: {}", self.packets(), parts.join(", "))
    }
}

fn face(side: RecordedSide) -> Face {
    match side {
        RecordedSide::Guest => Face::Guest,
        RecordedSide::Fabric => Face::Fabric,
    }
}

/// Readable by the owner alone, because it has what guests send.
fn create(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Counts what is written.
struct Counting<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
