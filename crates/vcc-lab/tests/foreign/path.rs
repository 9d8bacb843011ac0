//! The path between a host and its peer: it delays frames, and marks those of each sender, or has a bottleneck.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vcc_engine::sys;
use vcc_frames::mark_ce;
use vcc_frames::wire::*;
use vcc_testing::EndOnDrop;

/// The one-way delay.
const DELAY: Duration = Duration::from_millis(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const FRAME_MAX_BYTES: usize = 2048;

const TCP_AT: usize = ETHERNET_BYTES + IPV4_BYTES;

/// The data that one address has sent to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// New sequence space, without retransmissions.
    pub bytes: u64,
    pub segs: u64,
    pub runts: u64,
    pub marks: u64,
    /// Segments with nothing new.
    pub resent: u64,
    /// Frames for which a queue had no room.
    pub lost: u64,
    /// Payload of its largest segment.
    pub segment_bytes: usize,
    next: Option<u32>,
    until_mark: u32,
    /// When the first frame came, and when the bottleneck has carried the last with something new.
    times: Option<[Instant; 2]>,
}

impl Sent {
    /// The difference to an earlier value.
    pub fn since(&self, before: &Sent) -> Self {
        Sent {
            bytes: self.bytes - before.bytes,
            segs: self.segs - before.segs,
            runts: self.runts - before.runts,
            marks: self.marks - before.marks,
            ..*self
        }
    }

    /// Is this one in about so many frames? Their distance is randomised from half to one and a half times the mean, or
    /// windows would synchronise with them.
    fn is_nth(&mut self, frames: u32) -> bool {
        if self.until_mark == 0 {
            let spread = (self.segs as u32).wrapping_mul(2_654_435_761) >> 16;
            self.until_mark = (frames / 2 + spread % (frames + 1)).max(1);
        }
        self.until_mark -= 1;
        self.until_mark == 0
    }

    /// New bytes per second, from the first frame on.
    pub fn bytes_per_s(&self) -> f64 {
        let [first, last] = self.times.expect("data");
        self.bytes as f64 / (last - first).as_secs_f64()
    }

    /// The bytes in full segments.
    pub fn full_segs(&self) -> f64 {
        self.bytes as f64 / self.segment_bytes.max(1) as f64
    }
}

type Flow = (Ipv4Addr, Ipv4Addr);

/// What fills the way to the guest.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    pub bits_per_s: u32,
    /// ECN-capable frames behind more than these are marked; a queue of 100 frames is full.
    pub mark_above: usize,
}

const QUEUE_FRAMES: usize = 100;

/// How segments are marked.
#[derive(Clone, Copy, Debug)]
enum Marking {
    Every(u32),
    At(Bottleneck),
}

pub struct Path {
    marking: Marking,
    flows: Mutex<BTreeMap<Flow, Sent>>,
    ended: AtomicBool,
}

impl Path {
    /// Marks one in `mark_every` ECN-capable data segments of each sender.
    pub fn new(mark_every: u32) -> Self {
        Self::with(Marking::Every(mark_every))
    }

    /// Toward the first of the ends, the slowest link is this one.
    pub fn at(bottleneck: Bottleneck) -> Self {
        Self::with(Marking::At(bottleneck))
    }

    fn with(marking: Marking) -> Self {
        Path { marking, flows: Mutex::default(), ended: AtomicBool::new(false) }
    }

    pub fn sent(&self, from: Ipv4Addr, to: Ipv4Addr) -> Sent {
        let flows = self.flows.lock().expect("nobody has panicked");
        flows.get(&(from, to)).copied().unwrap_or_default()
    }

    /// [`Self::carry`] ends when this is dropped.
    pub fn end_on_drop(&self) -> EndOnDrop<'_> {
        EndOnDrop(&self.ended)
    }

    /// Carries frames between the two until the end.
    pub fn carry(&self, ends: [&File; 2]) {
        // In each direction, frames leave in order.
        let mut under_way: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
        let mut queue = VecDeque::new();
        let mut bytes = [0; FRAME_MAX_BYTES];
        while !self.ended.load(Ordering::Relaxed) {
            let now = Instant::now();
            for (mut end, under_way) in ends.into_iter().zip(&mut under_way) {
                while under_way.front().is_some_and(|next| next.0 <= now) {
                    let Some((_, frame)) = under_way.pop_front() else { break };
                    // The kernel drops the frame if a queue is full.
                    let _ = end.write(&frame);
                }
            }
            let next = under_way.iter().filter_map(|way| Some(way.front()?.0)).min();
            let patience = next.map_or(LOOK_AGAIN, |next| next - now);
            for from in readable(ends, patience) {
                let mut end = ends[from];
                let Ok(read) = end.read(&mut bytes) else { continue };
                let mut frame = bytes[..read].to_vec();
                let to = 1 - from;
                if let Some(leaves) = self.pass(&mut frame, to, &mut queue) {
                    under_way[to].push_back((leaves + DELAY, frame));
                }
            }
        }
    }

    /// When a frame leaves; None if the queue is full. `queue` has when those before it leave.
    fn pass(&self, frame: &mut [u8], to: usize, queue: &mut VecDeque<Instant>) -> Option<Instant> {
        let now = Instant::now();
        let Marking::At(Bottleneck { bits_per_s, mark_above }) = self.marking else {
            self.look_at(frame, [now; 2], false);
            return Some(now);
        };
        if to != 0 {
            self.look_at(frame, [now; 2], false);
            return Some(now);
        }
        while queue.front().is_some_and(|leaves| *leaves <= now) {
            queue.pop_front();
        }
        if queue.len() >= QUEUE_FRAMES {
            if let Some((flow, ..)) = data(frame) {
                self.flows.lock().expect("not panicked").entry(flow).or_default().lost += 1;
            }
            return None;
        }
        let is_crowded = queue.len() > mark_above;
        let leaves = queue.back().copied().unwrap_or(now) + serialization(frame, bits_per_s);
        queue.push_back(leaves);
        self.look_at(frame, [now, leaves], is_crowded);
        Some(leaves)
    }

    /// Notes a frame that comes at the first of `times` and leaves at the second, and may mark it.
    fn look_at(&self, frame: &mut [u8], [came, leaves]: [Instant; 2], is_crowded: bool) {
        let Some((flow, seq, payload_bytes)) = data(frame) else { return };
        let mut flows = self.flows.lock().expect("nobody has panicked");
        let sent = flows.entry(flow).or_default();
        let end = seq.wrapping_add(payload_bytes as u32);
        let new_bytes = (end.wrapping_sub(sent.next.unwrap_or(seq)) as i32).max(0);
        sent.bytes += new_bytes as u64;
        sent.resent += u64::from(new_bytes == 0);
        sent.next = Some(sent.next.unwrap_or(seq).wrapping_add(new_bytes as u32));
        let [first, last] = sent.times.unwrap_or([came; 2]);
        sent.times = Some([first, if new_bytes > 0 { leaves } else { last }]);
        sent.segs += 1;
        sent.segment_bytes = sent.segment_bytes.max(payload_bytes);
        sent.runts += u64::from(payload_bytes < sent.segment_bytes / 8);
        if u32::from(frame[ETHERNET_BYTES + 1] & 3) != sys::IP_ECN_ECT_0 {
            return;
        }
        let is_marked = match self.marking {
            Marking::Every(frames) => sent.is_nth(frames),
            Marking::At(_) => is_crowded,
        };
        if is_marked {
            sent.marks += 1;
            mark_ce(&mut frame[ETHERNET_BYTES..TCP_AT]);
        }
    }
}

fn serialization(frame: &[u8], bits_per_s: u32) -> Duration {
    Duration::from_secs_f64(frame.len() as f64 * 8.0 / f64::from(bits_per_s))
}

/// The ends that have a frame, after waiting for `patience` at most.
fn readable(ends: [&File; 2], patience: Duration) -> Vec<usize> {
    let mut polled =
        ends.map(|end| libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let timeout = libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: patience.subsec_nanos().into(),
    };
    // SAFETY: two live pollfds, a live timespec, no signal mask.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &timeout, std::ptr::null()) };
    (0..2).filter(|&end| polled[end].revents & libc::POLLIN != 0).collect()
}

/// The flow, sequence number and length of a data segment.
fn data(frame: &[u8]) -> Option<(Flow, u32, usize)> {
    let is_ipv4 = frame.get(12..ETHERNET_BYTES)? == ETHERTYPE_IPV4.to_be_bytes();
    let (ip, tcp) = (frame.get(ETHERNET_BYTES..TCP_AT)?, frame.get(TCP_AT..TCP_AT + TCP_BYTES)?);
    if !is_ipv4 || ip[0] != 0x45 || ip[9] != PROTOCOL_TCP {
        return None;
    }
    let word = |bytes: &[u8]| [bytes[0], bytes[1], bytes[2], bytes[3]];
    let total_bytes = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let payload_bytes = total_bytes.checked_sub(IPV4_BYTES + usize::from(tcp[12] >> 4) * 4)?;
    let flow = (word(&ip[12..]).into(), word(&ip[16..]).into());
    (payload_bytes > 0).then_some((flow, u32::from_be_bytes(word(&tcp[4..])), payload_bytes))
}
