//! The path between a host and its peer: it delays frames, and marks those of each sender.

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
    /// Payload of its largest segment.
    pub segment_bytes: usize,
    next: Option<u32>,
    until_mark: u32,
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

    /// The bytes in full segments.
    pub fn full_segs(&self) -> f64 {
        self.bytes as f64 / self.segment_bytes.max(1) as f64
    }
}

type Flow = (Ipv4Addr, Ipv4Addr);

pub struct Path {
    mark_every: u32,
    flows: Mutex<BTreeMap<Flow, Sent>>,
    ended: AtomicBool,
}

impl Path {
    /// Marks one in `mark_every` ECN-capable data segments of each sender.
    pub fn new(mark_every: u32) -> Self {
        Path { mark_every, flows: Mutex::default(), ended: AtomicBool::new(false) }
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
        // All frames have the same delay, so they leave in order.
        let mut under_way: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
        let mut bytes = [0; FRAME_MAX_BYTES];
        while !self.ended.load(Ordering::Relaxed) {
            let now = Instant::now();
            while under_way.front().is_some_and(|next| next.0 <= now) {
                let Some((_, to, frame)) = under_way.pop_front() else { break };
                let mut end = ends[to];
                // The kernel drops the frame if a queue is full.
                let _ = end.write(&frame);
            }
            let patience = under_way.front().map_or(LOOK_AGAIN, |next| next.0 - now);
            for from in readable(ends, patience) {
                let mut end = ends[from];
                let Ok(read) = end.read(&mut bytes) else { continue };
                let mut frame = bytes[..read].to_vec();
                self.look_at(&mut frame);
                under_way.push_back((Instant::now() + DELAY, 1 - from, frame));
            }
        }
    }

    fn look_at(&self, frame: &mut [u8]) {
        let Some((flow, seq, payload_bytes)) = data(frame) else { return };
        let mut flows = self.flows.lock().expect("nobody has panicked");
        let sent = flows.entry(flow).or_default();
        let end = seq.wrapping_add(payload_bytes as u32);
        let new_bytes = (end.wrapping_sub(sent.next.unwrap_or(seq)) as i32).max(0);
        sent.bytes += new_bytes as u64;
        sent.next = Some(sent.next.unwrap_or(seq).wrapping_add(new_bytes as u32));
        sent.segs += 1;
        sent.segment_bytes = sent.segment_bytes.max(payload_bytes);
        sent.runts += u64::from(payload_bytes < sent.segment_bytes / 8);
        if u32::from(frame[ETHERNET_BYTES + 1] & 3) != sys::IP_ECN_ECT_0 {
            return;
        }
        if sent.until_mark == 0 {
            // The distance between marks is randomised from half to one and a half times the mean,
            // or windows would synchronise with them.
            let spread = (sent.segs as u32).wrapping_mul(2_654_435_761) >> 16;
            sent.until_mark = (self.mark_every / 2 + spread % (self.mark_every + 1)).max(1);
        }
        sent.until_mark -= 1;
        if sent.until_mark == 0 {
            sent.marks += 1;
            mark_ce(&mut frame[ETHERNET_BYTES..TCP_AT]);
        }
    }
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
