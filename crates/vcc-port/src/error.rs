//! Errors. Each states what failed, on what, and what to do.

use std::io;

use crate::{capabilities, kernel, limits};

/// The verifier's refusal of a program.
#[derive(Debug)]
pub struct VerifierRefusal {
    pub release: String,
    pub program: String,
    pub last_line: String,
    /// Where the whole log is, or why it is nowhere.
    pub log: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no network device `{device}` in this network namespace (`ip link` lists them)")]
    NoSuchDevice { device: String },

    #[error(
        "`{device}` is not an Ethernet device but {kind}: attach to the tap or veth of a guest"
    )]
    NotEthernet { device: String, kind: String },

    #[error(
        "vcc is already attached to `{device}`: `vcc set {device}` changes its treatment, and `vcc detach {device}` ends it"
    )]
    AlreadyAttached { device: String },

    #[error(
        "a running process, such as `vcc domain` or a lab run, has vcc attached to `{device}`: end it, or wait for it"
    )]
    HeldByProcess { device: String },

    #[error("`{device}` is draining, so no other device joins it: `vcc attach {device}` first")]
    Draining { device: String },

    #[error("vcc is not attached to `{device}` (`vcc ports` lists where it is attached)")]
    NotAttached { device: String },

    #[error("not permitted to {doing}: {why}; run vcc as root on the host")]
    NotPermitted { doing: String, why: String },

    #[error(
        "Linux {release} has no TCX, to which vcc attaches: boot {}, on which vcc is known to work",
        kernel::tried()
    )]
    NoTcx { release: String },

    #[error(
        "the verifier of Linux {} refused the program {} of {what}: {}; {}; {experience}",
        .refusal.release, .refusal.program, .refusal.last_line, .refusal.log
    )]
    Verifier {
        what: String,
        refusal: Box<VerifierRefusal>,
        /// Whether vcc is known to work on this kernel.
        experience: String,
    },

    #[error(
        "the verifier of Linux {} refused the program {} with the underlay {name}: {}; {}",
        .refusal.release, .refusal.program, .refusal.last_line, .refusal.log
    )]
    UnderlayRefused { name: String, refusal: Box<VerifierRefusal> },

    #[error(
        "{}, so connections of `{device}` are forgotten only while the daemon is up: start `vcc run`, then \
         attach",
        kernel::lack_of_timers()
    )]
    NeedsDaemon { device: String },

    #[error(
        "no BPF file system at {path}, and mounting it failed ({source}): mount -t bpf bpf {path}"
    )]
    NoBpfFilesystem { path: String, source: io::Error },

    #[error(
        "this command has a mount namespace of its own, as by `ip netns exec`: it does not see \
         existing pins, and its own pins would end with it. Enter only the network namespace, by `nsenter \
         --net={netns} vcc ...`, or mount -t bpf bpf /sys/fs/bpf in a mount namespace that stays"
    )]
    PassingMounts { netns: String },

    #[error(
        "vcc was attached to `{device}` by another version, whose maps have another layout: \
         `vcc upgrade` takes its connections over, as `vcc run` does; or `vcc detach --now {device}`, \
         then attach again"
    )]
    OtherVersion { device: String },

    #[error(
        "the datapath of this host is another version's, whose maps have another layout: \
         `vcc upgrade` takes its connections over, as `vcc run` does; or `vcc detach --now --all`, then \
         start again"
    )]
    OtherHostVersion,

    #[error(
        "the maps that another version of vcc has pinned do not describe where their `{what}` is, so its \
         connections cannot be taken over: `vcc detach --now --all`, then start again"
    )]
    Undescribed { what: String },

    #[error(
        "`{device}` is under a policy, so only the daemon can take its connections over: start `vcc run`"
    )]
    UnderPolicy { device: String },

    #[error(
        "there are {} ports already, the most that a host can have: `vcc detach` one first",
        vcc_engine::sys::PORTS_MAX
    )]
    NoPortLeft,

    #[error(
        "the pinned policy of this host is another version's, whose maps have another layout: \
         `vcc detach --now --all`, remove /sys/fs/bpf/vcc/policy, and start again"
    )]
    OtherPolicyVersion,

    #[error(
        "no room for the pool `{pool}`: connections still hold windows of {} other pools; \
         wait until they end, or use one of those names",
        vcc_engine::sys::POOLS_MAX
    )]
    PoolsInUse { pool: String },

    #[error(
        "another `vcc trace` is running at `{device}`, and there can be one at a time: end it first"
    )]
    AlreadyTraced { device: String },

    #[error(
        "another `vcc emit` is running at `{device}`, and there can be one at a time: end it first"
    )]
    AlreadyEmitting { device: String },

    #[error(
        "`{device}` was attached without --emit, so vcc sends nothing there: detach it, and attach \
         it again with --emit"
    )]
    NothingToEmit { device: String },

    #[error(
        "`{device}` is in another network namespace: run vcc there, by `nsenter --net=/run/netns/NAME vcc ...`"
    )]
    InOtherNamespace { device: String },

    #[error(
        "{} underlays are loaded already, the most that a host can have: `vcc underlay unload` one first",
        vcc_engine::sys::UNDERLAY_SLOTS
    )]
    NoSlotLeft,

    #[error("no underlay `{name}` is loaded on this host; there are: {loaded}")]
    NotLoaded { name: String, loaded: String },

    #[error(
        "connections of `{name}` cannot continue under `{to}`: name another underlay that controls the \
         window and {} ECN, as `{name}` does",
        if *has_ecn { "has" } else { "does without" }
    )]
    NoFallback { name: String, to: String, has_ecn: bool },

    #[error("cannot {doing}: {why}")]
    System { doing: String, why: String },
}

impl Error {
    /// For a system call that failed.
    pub(crate) fn system(doing: impl Into<String>, answer: impl Into<Answer>) -> Self {
        let doing = doing.into();
        let answer = answer.into();
        if answer.not_permitted {
            Self::NotPermitted { doing, why: capabilities::why_refused() }
        } else {
            let advice = limits::advice(&answer.words).map(|advice| format!("; {advice}"));
            Self::System { doing, why: answer.words + &advice.unwrap_or_default() }
        }
    }

    /// For a map whose layout is another version's.
    pub(crate) fn layout(doing: &str) -> Self {
        Self::System { doing: doing.into(), why: "the kernel's map has another layout".into() }
    }

    pub(crate) fn last_os(doing: impl Into<String>) -> Self {
        Self::system(doing, io::Error::last_os_error())
    }
}

/// An error of the kernel, returned by any library.
pub(crate) struct Answer {
    not_permitted: bool,
    words: String,
}

impl From<io::Error> for Answer {
    fn from(error: io::Error) -> Self {
        let not_permitted = error.kind() == io::ErrorKind::PermissionDenied;
        Self { not_permitted, words: error.to_string() }
    }
}

impl From<libbpf_rs::Error> for Answer {
    fn from(error: libbpf_rs::Error) -> Self {
        let not_permitted = error.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        Self { not_permitted, words: format!("{error:#}") }
    }
}
