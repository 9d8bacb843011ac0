//! Specification of a guest, and of the end of its run.

use std::time::Duration;

use crate::card::CardSpec;
use crate::kernel::Kernel;
use crate::vcpu::Load;

/// Conditions that end a run before its guests do.
pub struct Watch<'a> {
    /// Polled several times per second.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Wall-clock time that a guest may run without advancing its virtual time. In virtual time a
    /// CPU is infinitely fast, so a guest that polls the clock in a loop never returns.
    pub patience: Duration,
    /// Virtual time by which all guests must have ended. A guest with only timers would run
    /// forever.
    pub ends_by_ns: u64,
}

pub struct GuestSpec {
    /// Another kernel than the world's.
    pub kernel: Option<Kernel>,
    pub memory_mib: u32,
    /// Text of the file whose path is in init's environment as `plan`.
    pub plan: String,
    pub card: CardSpec,
    /// TCP small queues: the socket is charged until a frame has left the card (Linux 3.6).
    /// Without, the card's driver orphans frames at once, as virtio's did up to Linux 4.11.
    pub small_queues: bool,
    /// None: it has a core of its own and never waits for it.
    pub vcpu: Option<VcpuSpec>,
}

/// A guest's virtual CPU on a shared core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcpuSpec {
    /// Index into [`WorldSpec::cores`](crate::WorldSpec).
    pub core: usize,
    /// Its CPU load besides the network.
    pub load: Option<Load>,
}
