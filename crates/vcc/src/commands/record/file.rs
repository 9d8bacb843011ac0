//! The file of a recording.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, bail};
use vcc_capture::both::{Face, PortSide};
use vcc_capture::{Statistics, Way, Writer, Written};
use vcc_command::version;
use vcc_port::{RecordedPacket, RecordedSide};

use crate::interrupt;

const FAILED: &str = "cannot write the recording";

/// An interface for each side of each port, in which a packet is found by its port and side.
pub struct RecordingFile {
    writer: Writer<Counting<BufWriter<Interruptible>>>,
    interfaces: Vec<Interface>,
    max_bytes: Option<u64>,
    is_file: bool,
}

struct Interface {
    port: usize,
    side: RecordedSide,
    number: u32,
    /// That were written.
    packets: u64,
    /// That were read, whether they were wanted or not.
    received: u64,
    lost: u64,
}

impl RecordingFile {
    /// Without a path, it is stdout.
    ///
    /// # Errors
    /// That is a terminal, or the file's directory does not exist.
    pub fn require(path: Option<&Path>) -> anyhow::Result<()> {
        match path {
            Some(path) => {
                let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
                let directory = directory.unwrap_or(Path::new("."));
                let failed = || format!("cannot write {}", path.display());
                fs::metadata(directory).with_context(failed).map(drop)
            }
            None if io::stdout().is_terminal() => {
                bail!("a terminal cannot show a capture: give --output FILE, or pipe it")
            }
            None => Ok(()),
        }
    }

    pub fn open(path: Option<&Path>, max_bytes: Option<u64>) -> anyhow::Result<Self> {
        let to = match path {
            Some(path) => create(path)?,
            None => File::from(io::stdout().as_fd().try_clone_to_owned().context(FAILED)?),
        };
        let to = Counting { to: BufWriter::new(Interruptible(to)), bytes: 0 };
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
                let (packets, received, lost) = Default::default();
                self.interfaces.push(Interface { port, side, number, packets, received, lost });
            }
        }
        self.flush()
    }

    /// Counts a packet that may be written.
    pub fn note_received(&mut self, packet: &RecordedPacket) {
        if let Some(interface) = self.interface(packet) {
            interface.received += 1;
        }
    }

    fn interface(&mut self, packet: &RecordedPacket) -> Option<&mut Interface> {
        let is_its = |it: &&mut Interface| (it.port, it.side) == (packet.port, packet.side);
        self.interfaces.iter_mut().find(is_its)
    }

    pub fn packet(&mut self, packet: &RecordedPacket) -> anyhow::Result<()> {
        let interface = self.interface(packet).context("no such interface")?;
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

    /// Takes the number of packets of each interface that were not read. Returns their sum.
    pub fn note_lost(
        &mut self,
        lost: impl Fn(usize, RecordedSide) -> Result<u64, vcc_port::Error>,
    ) -> Result<u64, vcc_port::Error> {
        for interface in &mut self.interfaces {
            interface.lost = lost(interface.port, interface.side)?;
        }
        Ok(self.interfaces.iter().map(|interface| interface.lost).sum())
    }

    pub fn end(&mut self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for interface in &self.interfaces {
            let Interface { received, lost, .. } = *interface;
            let statistics = Statistics { received: received + lost, lost };
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
    let failed = || format!("cannot write {}", path.display());
    let mut options = OpenOptions::new();
    let file =
        options.write(true).create(true).mode(OWNER_ALONE).open(path).with_context(failed)?;
    if file.metadata().with_context(failed)?.is_file() {
        // It may have been there, with another mode.
        file.set_permissions(Permissions::from_mode(OWNER_ALONE)).with_context(failed)?;
        file.set_len(0).with_context(failed)?;
    }
    Ok(file)
}

const OWNER_ALONE: u32 = 0o600;

/// A writer that a signal ends while its reader does not read.
struct Interruptible(File);

impl Write for Interruptible {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted && interrupt::came() => {
                Err(io::Error::other("a signal came while its reader was not reading"))
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
