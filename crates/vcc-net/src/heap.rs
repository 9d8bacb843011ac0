//! The heap of a process through which frames pass.

use libc::{M_TRIM_THRESHOLD, c_int, mallopt};

/// At most so much of the heap's end stays with the process while nothing uses it.
const KEPT_BYTES: c_int = 1 << 20;

/// Called once, when the process starts. The allocator's own threshold is 128 KiB: two super-segments that come
/// and go then return their memory to the kernel each time, and fetch it again, page by page.
pub fn keep_free_memory() {
    // SAFETY: it sets a number of the allocator's.
    let is_set = unsafe { mallopt(M_TRIM_THRESHOLD, KEPT_BYTES) } != 0;
    debug_assert!(is_set, "the allocator knows its threshold");
}
