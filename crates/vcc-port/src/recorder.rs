//! Copies of the packets on both sides of ports' programs (`datapath/record.bpf.c`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};

use crate::clock::monotonic;
use crate::plain::{Plain, from_bytes};
use crate::tcx::{self, Beside, Hook};
use crate::{Error, Port, Result, object, ring};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/record.bpf.o"));
const WHAT: &str = "the recording";
const CONSTANTS_SECTION: &str = ".rodata.record";
const RING: &str = "packets";
const LOST: &str = "lost";

/// What is read at once, so that a reader that is slower than the traffic still returns.
const BATCH_BYTES: usize = 1 << 20;

/// The side of a port's programs on which a packet was seen, numbered as enum record_side of
/// `datapath/record.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordedSide {
    /// As the guest sends and gets it.
    Guest,
    /// As the fabric gets and sends it.
    Fabric,
}

impl RecordedSide {
    pub const BOTH: [Self; 2] = [Self::Guest, Self::Fabric];

    /// Is a program of this name one of a recording?
    pub(crate) fn has_program(name: &str) -> bool {
        let programs =
            Hook::BOTH.into_iter().flat_map(|hook| Self::BOTH.map(|it| it.program(hook)));
        programs.into_iter().any(|(program, _)| program == name)
    }

    /// At a hook, the program of this side, and where it runs.
    fn program(self, hook: Hook) -> (&'static str, Beside) {
        match (self, hook) {
            (Self::Guest, Hook::FromGuest) => ("record_sent", Beside::Before),
            (Self::Fabric, Hook::FromGuest) => ("record_leaving", Beside::Behind),
            (Self::Fabric, Hook::ToGuest) => ("record_coming", Beside::Before),
            (Self::Guest, Hook::ToGuest) => ("record_received", Beside::Behind),
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::BOTH.into_iter().find(|side| *side as u8 == number)
    }
}

/// What is recorded.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    pub sides: Vec<RecordedSide>,
    /// Of each packet, 1 to [`Recorder::KEPT_MAX_BYTES`].
    pub kept_max_bytes: u32,
    /// Room for packets that have not been read yet: a power of two, and a multiple of the size of a page.
    pub buffer_bytes: u32,
}

/// A packet of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// Since 1970, by the clock as it was when the recording began.
    pub time: Duration,
    /// The place of its port among those that are recorded.
    pub port: usize,
    pub side: RecordedSide,
    pub is_from_guest: bool,
    /// The size of the frame, a VLAN tag included.
    pub frame_bytes: u32,
    /// What was kept of it.
    pub frame: Vec<u8>,
}

/// A recording, which ends when it is dropped, also if the process is killed.
pub struct Recorder {
    ring: RingBuffer<'static>,
    batch: Rc<RefCell<Batch>>,
    ports: Vec<RecordedPort>,
}

/// The programs at a port.
struct RecordedPort {
    links: Vec<Link>,
    lost: MapHandle,
    _programs: Object,
}

/// Packets that were read.
#[derive(Default)]
struct Batch {
    packets: VecDeque<RecordedPacket>,
    bytes: usize,
    /// Between CLOCK_MONOTONIC and the time since 1970, when the recording began.
    since_1970: Duration,
}

/// Of several readings of both clocks, the one in which least time passed in between.
fn monotonic_since_1970() -> Duration {
    let reading = || {
        let before = monotonic();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let passed = monotonic() - before;
        (passed, now.saturating_sub(before + passed / 2))
    };
    let least = (0..5).map(|_| reading()).min();
    least.map_or(Duration::ZERO, |(_, since_1970)| since_1970)
}

impl Recorder {
    /// datapath/record.h has the same.
    pub const KEPT_MAX_BYTES: u32 = 262_144;

    /// The ports' devices must be in the calling thread's network namespace.
    ///
    /// # Errors
    /// A port was detached, or the kernel refuses the programs or the memory.
    pub fn start(ports: &[Port], options: &RecorderOptions) -> Result<Self> {
        let failed = |e| Error::system("make a ring of recorded packets", e);
        let packets = ring::create(RING, options.buffer_bytes).map_err(failed)?;
        let since_1970 = monotonic_since_1970();
        let batch = Rc::new(RefCell::new(Batch { since_1970, ..Batch::default() }));
        let mut builder = RingBufferBuilder::new();
        let into = Rc::clone(&batch);
        builder.add(&packets, move |bytes| into.borrow_mut().take(bytes)).map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        let start = |(place, port)| RecordedPort::start(place, port, &packets, options);
        let ports = ports.iter().enumerate().map(start).collect::<Result<_>>()?;
        Ok(Self { ring, batch, ports })
    }

    /// The next packet, in the order of their times but for those that CPUs recorded at the same moment;
    /// None after `timeout` or a signal.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<RecordedPacket>> {
        if let Some(packet) = self.received_already() {
            return Ok(Some(packet));
        }
        match self.ring.poll_raw(timeout) {
            // The batch is full.
            status if status >= 0 || status == -libc::ENOBUFS || status == -libc::EINTR => {
                Ok(self.received_already())
            }
            status => {
                let error = std::io::Error::from_raw_os_error(-status);
                Err(Error::system("read recorded packets", error))
            }
        }
    }

    /// Whether a port is recorded: not once its device has gone, or its recording was stopped.
    pub fn is_attached(&self, port: usize) -> Result<bool> {
        let links = &self.ports[port].links;
        links.iter().try_fold(!links.is_empty(), |all, link| Ok(all && tcx::is_attached(link)?))
    }

    /// Ends the recording of a port. [`Self::next`] still returns what was recorded.
    pub fn stop(&mut self, port: usize) {
        self.ports[port].links.clear();
    }

    /// Ends the recording of all ports.
    pub fn stop_all(&mut self) {
        (0..self.ports.len()).for_each(|port| self.stop(port));
    }

    /// The number of packets of a port that were not recorded, because they came faster than they were read.
    pub fn lost(&self, port: usize, side: RecordedSide) -> Result<u64> {
        const DOING: &str = "read how many packets were not recorded";
        let key = (side as u32).to_ne_bytes();
        let by_cpu = self.ports[port].lost.lookup_percpu(&key, MapFlags::ANY);
        let by_cpu = by_cpu.map_err(|e| Error::system(DOING, e))?.unwrap_or_default();
        let of_cpu = |bytes: &Vec<u8>| {
            bytes.first_chunk().copied().map(u64::from_ne_bytes).ok_or_else(|| Error::layout(DOING))
        };
        by_cpu.iter().map(of_cpu).sum()
    }

    fn received_already(&mut self) -> Option<RecordedPacket> {
        let mut batch = self.batch.borrow_mut();
        let packet = batch.packets.pop_front();
        if batch.packets.is_empty() {
            batch.bytes = 0;
        }
        packet
    }
}

impl RecordedPort {
    fn start(
        place: usize,
        port: &Port,
        packets: &MapHandle,
        options: &RecorderOptions,
    ) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        let constants = [place as u32, options.kept_max_bytes].map(u32::to_ne_bytes);
        object::set_constants(&mut open, CONSTANTS_SECTION, constants.as_flattened())?;
        object::lend(&mut open, [(RING, packets)], "use a ring for recorded packets")?;
        let programs = object::load(open, WHAT)?;
        let lost =
            programs.maps().find(|map| map.name() == LOST).ok_or_else(|| object::lacks(LOST));
        let lost = MapHandle::try_from(&lost?).map_err(|e| Error::system("open a map", e))?;
        let mut links = Vec::new();
        for hook in Hook::BOTH {
            for side in &options.sides {
                let (name, beside) = side.program(hook);
                let program = object::program(&programs, name)?;
                links.push(port.attach_beside(&program, hook, beside)?);
            }
        }
        Ok(Self { links, lost, _programs: programs })
    }
}

/// struct recorded_packet of `datapath/record.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    time_ns: u64,
    device: u32,
    packet_bytes: u32,
    kept_bytes: u32,
    vlan_tpid: u16,
    vlan_tci: u16,
    side: u8,
    from_guest: u8,
    unused: [u8; 6],
}

// SAFETY: a C struct of integers.
unsafe impl Plain for Header {}

const HEADER_BYTES: usize = size_of::<Header>();
/// In a frame, a VLAN tag follows both addresses.
const TAG_AT: usize = 12;
const TAG_BYTES: usize = 4;

impl Batch {
    /// Stops the reader once there is enough.
    fn take(&mut self, bytes: &[u8]) -> i32 {
        if let Some(packet) = self.read(bytes) {
            self.bytes += packet.frame.len() + size_of::<RecordedPacket>();
            self.packets.push_back(packet);
        }
        if self.bytes < BATCH_BYTES { 0 } else { -libc::ENOBUFS }
    }

    fn read(&self, bytes: &[u8]) -> Option<RecordedPacket> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let header: Header = from_bytes(header)?;
        let mut frame = rest.get(..header.kept_bytes as usize)?.to_vec();
        let mut frame_bytes = header.packet_bytes;
        if header.vlan_tpid != 0 {
            frame_bytes += TAG_BYTES as u32;
            if frame.len() >= TAG_AT {
                let tag = [header.vlan_tpid, header.vlan_tci].map(u16::to_be_bytes);
                frame.splice(TAG_AT..TAG_AT, tag.as_flattened().iter().copied());
            }
        }
        Some(RecordedPacket {
            time: self.since_1970 + Duration::from_nanos(header.time_ns),
            port: header.device as usize,
            side: RecordedSide::from_number(header.side)?,
            is_from_guest: header.from_guest != 0,
            frame_bytes,
            frame,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use libbpf_rs::btf::Btf;
    use libbpf_rs::btf::HasSize;
    use libbpf_rs::btf::types::{MemberAttr, Struct};

    use super::*;

    #[test]
    fn the_header_is_that_of_the_object() {
        let btf = Btf::from_raw("record", OBJECT).expect("BTF").expect("a description");
        let described = btf.type_by_name::<Struct<'_>>("recorded_packet").expect("the structure");
        assert_eq!(described.size(), HEADER_BYTES);
        let at = |name: &str| {
            let named =
                |it: &libbpf_rs::btf::types::StructMember<'_>| it.name == Some(name.as_ref());
            match described.iter().find(named).expect(name).attr {
                MemberAttr::Normal { offset } => offset as usize / 8,
                MemberAttr::BitField { .. } => panic!("{name} is a bit field"),
            }
        };
        for (name, ours) in [
            ("time_ns", offset_of!(Header, time_ns)),
            ("device", offset_of!(Header, device)),
            ("packet_bytes", offset_of!(Header, packet_bytes)),
            ("kept_bytes", offset_of!(Header, kept_bytes)),
            ("vlan_tpid", offset_of!(Header, vlan_tpid)),
            ("vlan_tci", offset_of!(Header, vlan_tci)),
            ("side", offset_of!(Header, side)),
            ("from_guest", offset_of!(Header, from_guest)),
        ] {
            assert_eq!(at(name), ours, "{name}");
        }
    }

    #[test]
    fn a_tag_beside_the_packet_returns_to_its_place() {
        let mut record = Vec::new();
        record.extend(5_000_000_000_u64.to_ne_bytes());
        record.extend([1_u32, 100, 20].map(u32::to_ne_bytes).concat());
        record.extend([0x8100_u16, 7].map(u16::to_ne_bytes).concat());
        record.extend([1, 1, 0, 0, 0, 0, 0, 0]);
        record.extend(0..40);
        let batch = Batch { since_1970: Duration::from_secs(100), ..Batch::default() };
        let packet = batch.read(&record).expect("a packet");
        assert_eq!((packet.time, packet.port), (Duration::from_secs(105), 1));
        assert_eq!((packet.side, packet.is_from_guest), (RecordedSide::Fabric, true));
        assert_eq!((packet.frame_bytes, packet.frame.len()), (104, 24));
        assert_eq!(packet.frame[8..20], [8, 9, 10, 11, 0x81, 0, 0, 7, 12, 13, 14, 15]);
        assert!(batch.read(&record[..50]).is_none() && batch.read(&[]).is_none());
    }
}
