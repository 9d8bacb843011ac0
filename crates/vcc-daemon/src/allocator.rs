//! The memory allocator of this process.

/// One heap for all threads. glibc gives threads that come and go up to eight heaps for each CPU, each
/// of which keeps what it once needed: a daemon's memory then grew for as long as devices, policies and
/// requests came, although it used no more. Other C libraries have no such heaps.
pub(crate) fn use_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator, before the process has other threads.
    unsafe {
        // An older glibc that refuses keeps its heaps: more memory, and nothing else.
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
