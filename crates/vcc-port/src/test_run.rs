//! BPF_PROG_TEST_RUN: running a program once on a frame, without a device.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::libbpf_sys;

/// Programs may lengthen a frame by as much.
const ROOM_TO_GROW_BYTES: usize = 256;

/// The return value of a program, and the frame as the program left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutput {
    pub return_value: i32,
    pub frame: Vec<u8>,
    /// When it may leave the device at the earliest; CLOCK_MONOTONIC. 0: at once.
    pub departs_ns: u64,
    /// The words of skb->cb.
    pub(crate) cb: [u32; CB_WORDS],
}

const CB_WORDS: usize = 5;

/// The fields of struct __sk_buff (linux/bpf.h) that a run may set.
#[derive(Clone, Copy, Default)]
pub(crate) struct Context {
    pub mark: u32,
    /// The segment size of a super-segment, or 0.
    pub gso_size: u32,
    pub cb: [u32; CB_WORDS],
}

impl Context {
    const BYTES: usize = 192;
    const MARK_AT: usize = 8;
    const CB_AT: usize = 48;
    const TSTAMP_AT: usize = 152;
    const GSO_SIZE_AT: usize = 176;

    fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[Self::MARK_AT..][..4].copy_from_slice(&self.mark.to_ne_bytes());
        bytes[Self::GSO_SIZE_AT..][..4].copy_from_slice(&self.gso_size.to_ne_bytes());
        for (word, bytes) in self.cb.iter().zip(bytes[Self::CB_AT..].chunks_exact_mut(4)) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn departs_ns_of(bytes: &[u8; Self::BYTES]) -> u64 {
        u64::from_ne_bytes(std::array::from_fn(|at| bytes[Self::TSTAMP_AT + at]))
    }

    fn cb_of(bytes: &[u8; Self::BYTES]) -> [u32; CB_WORDS] {
        std::array::from_fn(|word| {
            let at = Self::CB_AT + 4 * word;
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        })
    }
}

pub(crate) fn run(
    program: BorrowedFd<'_>,
    frame: &[u8],
    context: Context,
) -> io::Result<RunOutput> {
    let context = context.bytes();
    let mut context_out = [0; Context::BYTES];
    let mut out = vec![0; frame.len() + ROOM_TO_GROW_BYTES];
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        data_out: out.as_mut_ptr().cast(),
        data_size_out: out.len() as u32,
        ctx_in: context.as_ptr().cast(),
        ctx_size_in: context.len() as u32,
        ctx_out: context_out.as_mut_ptr().cast(),
        ctx_size_out: context_out.len() as u32,
        ..Default::default()
    };
    // SAFETY: an open descriptor; frame, contexts and `out` have the lengths given and outlive the call,
    // which only writes to `out` and `context_out`.
    let status = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    if status < 0 {
        return Err(io::Error::from_raw_os_error(-status));
    }
    out.truncate(options.data_size_out as usize);
    let (cb, departs_ns) = (Context::cb_of(&context_out), Context::departs_ns_of(&context_out));
    Ok(RunOutput { return_value: options.retval as i32, frame: out, departs_ns, cb })
}
