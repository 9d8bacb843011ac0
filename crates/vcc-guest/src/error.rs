//! Errors: what failed, with which value, and the next step.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the kernel's congestion controls: {source}: check that /proc is mounted")]
    Available { source: io::Error },

    #[error("cannot register the congestion control `{name}`: {why}")]
    Register { name: String, why: String },

    #[error(
        "the congestion control `{name}` cannot be registered: {why}; nor can its module: {module}. Build the \
         module by `dkms install vcc-flood/{version}` (packages dkms and linux-headers-{release}), and try again",
        version = env!("CARGO_PKG_VERSION")
    )]
    NoProvider { name: String, why: String, module: String, release: String },

    #[error(
        "a channel to the host needs `{name}` as BPF, which failed: {why}; without `--channel`, use it \
         only behind a host that holds all connections of this guest"
    )]
    ChannelNeedsBpf { name: String, why: String },

    #[error(
        "`{name}` is registered {how} a channel to the host: end that first (`systemctl stop {unit}`, or \
         `vcc-guest remove`), and try again"
    )]
    OtherForm { name: String, how: &'static str, unit: &'static str },

    #[error(
        "cannot open the channel {path}: {source}; the virtual machine needs a virtserialport with \
         name=org.vcc.flood, which no other process uses", path = path.display()
    )]
    Channel { path: PathBuf, source: io::Error },

    #[error("cannot follow the channel: {why}")]
    Follow { why: String },

    #[error("cannot give the host's reports to the kernel: {why}")]
    Report { why: String },

    #[error("another process has just registered a congestion control `{name}`: try again")]
    Taken { name: String },

    #[error("cannot {doing} {path}: {source}", path = path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },

    #[error(
        "the kernel did not make `{name}` the default congestion control: it is still `{current}`; \
         compare with `sysctl net.ipv4.tcp_available_congestion_control`"
    )]
    DefaultKept { name: String, current: String },

    #[error(
        "`{name}` is the default congestion control, and the kernel has no other that could replace it: \
         set one by `sysctl net.ipv4.tcp_congestion_control`, and try again"
    )]
    NoOther { name: String },

    #[error(
        "`{name}` is still registered {seconds} s after its pin was removed, so another process holds it: \
         find it by `bpftool link`, and end it"
    )]
    Held { name: String, seconds: u64 },

    #[error("the module {module} stays loaded, although no connection uses it: {why}")]
    ModuleStays { module: String, why: String },

    #[error(
        "not permitted to {doing}: {why}; run vcc-guest as root of the guest itself, outside of containers"
    )]
    NotPermitted { doing: String, why: String },

    #[error(
        "cannot count the connections: {source} (the kernel's modules inet_diag and tcp_diag report them)"
    )]
    Connections { source: io::Error },

    #[error(transparent)]
    Bpf(vcc_port::Error),
}

impl Error {
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File { doing, path: path.into(), source }
    }
}

impl From<vcc_port::Error> for Error {
    fn from(error: vcc_port::Error) -> Self {
        match error {
            vcc_port::Error::NotPermitted { doing, why } => Self::NotPermitted { doing, why },
            other => Self::Bpf(other),
        }
    }
}
