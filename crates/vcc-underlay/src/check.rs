//! Runs the hooks of an underlay on what the engine may give them, and checks what they leave.

use std::mem::offset_of;

use thiserror::Error;
use vcc_engine::{Params, sys};

use crate::bytes;
use crate::machine::{Fault, Machine};
use crate::object::Object;

/// How many hooks are run.
const CALLS: u32 = 200_000;

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Hooks that were run.
    pub calls: u32,
    /// Deliberate faults, one in each hook, all of which were detected.
    pub twins: u32,
}

#[derive(Debug, Error)]
pub enum CheckError {
    #[error("{fault}; the arguments were {call}")]
    Broken { fault: Fault, call: String },
    #[error(
        "a deliberate fault in the hook {hook} was not detected: this is a bug in vcc's check, not \
         in the underlay"
    )]
    Unnoticed { hook: &'static str },
}

/// The hooks, by their numbers (engine/cc/call.h).
const HOOKS: [(u32, &str); 7] = [
    (sys::HOOK_INIT, "_init"),
    (sys::HOOK_FEEDBACK, "_on_feedback"),
    (sys::HOOK_ACK, "_on_ack"),
    (sys::HOOK_CONGESTION, "_on_congestion"),
    (sys::HOOK_TIMEOUT, "_on_timeout"),
    (sys::HOOK_IDLE, "_on_idle"),
    (sys::HOOK_MSS, "_on_mss"),
];

/// Runs the hooks in some order, as in the life of a connection: what one leaves, the next finds. Then
/// the same with a fault in each hook, which must be noticed.
pub fn check(object: &Object) -> Result<Checked, CheckError> {
    let machine = Machine::from_object(object);
    run(&machine, object.traits(), None)
        .map_err(|(fault, call)| CheckError::Broken { fault, call })?;
    for (number, hook) in HOOKS {
        if run(&machine, object.traits(), Some(number)).is_ok() {
            return Err(CheckError::Unnoticed { hook });
        }
    }
    Ok(Checked { calls: CALLS, twins: HOOKS.len() as u32 })
}

/// xorshift64 (Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// 1 to `most`; each order of magnitude is as likely.
    fn upto(&mut self, most: u32) -> u32 {
        let bits = self.next() % u64::from(32 - most.leading_zeros()) + 1;
        (self.next() % (1 << bits)) as u32 % most + 1
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.next() % count == 0
    }
}

/// What the engine may have measured, and the floor (engine/path.h).
fn path_measured(cc: &mut sys::vcc_cc_state, random: &mut Random) {
    let path = &mut cc.path;
    path.rtt_us = random.upto(30_000_000);
    path.rtt_least_us = random.upto(path.rtt_us);
    path.rtt_min_us = random.upto(path.rtt_least_us);
    path.rate_bytes_per_ms = random.upto(u32::MAX);
    path.target_us = if random.one_in(2) { 0 } else { random.upto(u32::MAX) };
    cc.floor_segs = random.upto(1000) as u16;
}

/// `twin`: the hook with the deliberate fault.
fn run(machine: &Machine, traits: u32, twin: Option<u32>) -> Result<(), (Fault, String)> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut cc = sys::vcc_cc_state::default();
    let params = Params::default().0;
    let mut mss_bytes = 1448;
    let mut now_us = 0u32;
    let mut snd_una = 0u32;
    for step in 0..CALLS {
        // A new connection now and then.
        let hook = match step % 20_000 {
            0 => sys::HOOK_INIT,
            _ => match random.next() % 100 {
                0..=2 => sys::HOOK_CONGESTION,
                3 => sys::HOOK_TIMEOUT,
                4 => sys::HOOK_IDLE,
                5 => sys::HOOK_MSS,
                6..=45 => sys::HOOK_FEEDBACK,
                _ => sys::HOOK_ACK,
            },
        };
        let acked_bytes = if random.one_in(8) { 0 } else { random.upto(1 << 20) };
        let reported_bytes = if random.one_in(8) { 0 } else { random.upto(1 << 20) };
        let marked_bytes = if random.one_in(2) { 0 } else { random.upto(1 << 20) };
        let timed = random.one_in(4);
        if timed {
            path_measured(&mut cc, &mut random);
        }
        now_us = now_us.wrapping_add(random.upto(10_000_000));
        snd_una = snd_una.wrapping_add(acked_bytes);
        let ack = sys::vcc_cc_ack {
            acked_bytes,
            reported_bytes,
            marked_bytes: marked_bytes.min(reported_bytes),
            srtt_us: if random.one_in(16) { 0 } else { random.upto(1 << 26) },
            mss_bytes,
            now_us,
            snd_una,
            snd_nxt: snd_una.wrapping_add(random.upto(1 << 30)),
            window_limited: random.one_in(2),
            timed,
            fractional: random.one_in(2),
            ..Default::default()
        };
        let before = cc;
        let argument = match hook {
            sys::HOOK_INIT | sys::HOOK_IDLE => random.upto(1000),
            sys::HOOK_CONGESTION => (random.next() % 3) as u32,
            sys::HOOK_MSS => {
                let from_bytes = mss_bytes;
                mss_bytes = random.upto(u16::MAX.into());
                from_bytes << 16 | mss_bytes
            }
            _ => 0,
        };
        let given = || {
            let name = HOOKS.iter().find(|(number, _)| *number == hook).map_or("", |(_, it)| it);
            format!("{name}({argument}) with {before:?} and {ack:?}")
        };
        let call = u64::from(argument) << 32 | u64::from(hook);
        let writers = machine
            .run(&mut cc, Some(&ack), Some(&params), call, true)
            .map_err(|fault| (fault, given()))?;
        if twin == Some(hook) {
            cc.cwnd_segs = 0;
        }
        if let Some((offset, what)) = broken(&before, &cc, &ack, hook, traits) {
            return Err((machine.fault_in(&writers, offset, what), given()));
        }
        // As engine/cc/loaded.h does, and prr.h, where a reduction ends.
        cc.cwnd_segs = cc.cwnd_segs.min(sys::CWND_MAX_SEGS);
        if hook == sys::HOOK_CONGESTION {
            cc.cwnd_segs = cc.cwnd_segs.min(cc.ssthresh_segs);
            cc.credit_bytes = 0;
        }
    }
    Ok(())
}

/// The fault of the state that a hook has left (engine/invariant.h), and at which offset.
fn broken(
    before: &sys::vcc_cc_state,
    cc: &sys::vcc_cc_state,
    ack: &sys::vcc_cc_ack,
    hook: u32,
    traits: u32,
) -> Option<(usize, String)> {
    let wrong = |offset: usize, name: &str, value: u32, least: u32, most: u32| {
        Some((offset, format!("leaves {name} at {value}: it must be {least} to {most}")))
    };
    // An ACK may double the window, as in slow start; the engine cuts it to the most there is.
    let most_segs = 2 * sys::CWND_MAX_SEGS + ack.acked_bytes / ack.mss_bytes + 1;
    let cwnd_segs = cc.cwnd_segs;
    if cwnd_segs < 1 || cwnd_segs > most_segs {
        let offset = offset_of!(sys::vcc_cc_state, cwnd_segs);
        return wrong(offset, "cwnd_segs", cwnd_segs, 1, sys::CWND_MAX_SEGS);
    }
    let ssthresh_segs = cc.ssthresh_segs;
    let reduces = hook == sys::HOOK_CONGESTION || hook == sys::HOOK_TIMEOUT;
    let was_infinite = before.ssthresh_segs == sys::SSTHRESH_INFINITE;
    let may_be_infinite = hook == sys::HOOK_INIT || (was_infinite && !reduces);
    let is_infinite = may_be_infinite && ssthresh_segs == sys::SSTHRESH_INFINITE;
    if !is_infinite && !(1..=sys::CWND_MAX_SEGS).contains(&ssthresh_segs) {
        let offset = offset_of!(sys::vcc_cc_state, ssthresh_segs);
        return wrong(offset, "ssthresh_segs", ssthresh_segs, 1, sys::CWND_MAX_SEGS);
    }
    let alpha = cc.own[sys::CC_OWN_ALPHA as usize];
    if traits & sys::CC_ALPHA != 0 && alpha > sys::CC_ALPHA_ONE {
        let offset = offset_of!(sys::vcc_cc_state, own) + 4 * sys::CC_OWN_ALPHA as usize;
        return wrong(offset, "alpha", alpha, 0, sys::CC_ALPHA_ONE);
    }
    if cc.path != before.path {
        let (was, is) = (bytes::from_plain(&before.path), bytes::from_plain(&cc.path));
        let word = was.chunks(4).zip(is.chunks(4)).position(|(was, is)| was != is)?;
        let offset = offset_of!(sys::vcc_cc_state, path) + 4 * word;
        return Some((offset, "writes cc->path, which only the engine may write".to_owned()));
    }
    None
}
