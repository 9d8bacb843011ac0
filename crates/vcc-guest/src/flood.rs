//! vFlood's congestion control in this guest: registered, the default, and removed again.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use vcc_net::clock::now_ns;
use vcc_port::lock::Lock;
use vcc_port::open_own_directory;

use crate::channel::{self, FLOWS, FollowError, Heard, LEASES, Reports};
use crate::connections::Connections;
use crate::default::{DefaultControl, Restored};
use crate::kernel;
use crate::list::LEASED_FLOOD;
use crate::module::{Module, Presence, Unloading};
use crate::pins::{Found, Pins};
use crate::{Error, Result, find};

fn open(channel: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options.open(channel)
}

#[cfg(test)]
mod tests;

const NAME: &str = "flood";

/// The kernel unregisters what is not pinned any more a moment later.
const PATIENCE: Duration = Duration::from_secs(10);

/// The congestion control, and the places of this guest that it concerns.
#[derive(Debug)]
pub struct Flood {
    /// The kernel's name of it.
    name: String,
    /// What lasts to the end of this boot, as the registration does, and the lock.
    state: PathBuf,
    available: PathBuf,
    btf: PathBuf,
    default: DefaultControl,
    pins: Pins,
    module: Module,
}

/// On what its window depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The host is taken to hold each connection.
    Unconditional,
    /// On what the host reports on a channel: without news, it is NewReno.
    Leased,
}

/// What registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// BPF, pinned there.
    Bpf(PathBuf),
    Module,
    /// The kernel itself.
    BuiltIn,
    /// BPF that others have registered.
    Other,
    /// Only root may look at what is pinned.
    Hidden,
}

/// What [`Flood::install`] has found or done.
#[derive(Debug)]
pub struct Installed {
    pub provider: Provider,
    pub was_registered: bool,
    pub default: String,
    /// The default before, if it is known.
    pub before: Option<String>,
}

#[derive(Debug)]
pub struct Removed {
    pub default: Restored,
    pub unregistered: Unregistered,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Unregistered {
    WasNot,
    Done(Provider),
    /// The module stays, with so many users.
    InUse(u64),
    /// Others than this command have registered it.
    NotOurs(Provider),
}

/// For people and scripts.
#[derive(Debug, Serialize)]
pub struct Status {
    pub kernel: String,
    /// What the kernel lacks for BPF struct_ops.
    pub lacks: Option<String>,
    #[serde(skip)]
    pub provider: Option<Provider>,
    pub registered: Option<&'static str>,
    pub pin: Option<PathBuf>,
    pub channel: Option<ChannelState>,
    pub default: String,
    pub default_before: Option<String>,
    pub connections: Option<Connections>,
    /// Why they are not known.
    pub connections_unknown: Option<String>,
}

/// What the channel gives connections, if `flood` is registered with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelState {
    /// The host holds the connections, and has renewed its lease.
    Leased,
    /// The host is silent or does not hold: the window is NewReno's.
    NotLeased,
}

impl Provider {
    /// For scripts.
    fn word(&self) -> &'static str {
        match self {
            Self::Bpf(_) => "bpf",
            Self::Module => "module",
            Self::BuiltIn => "built-in",
            Self::Other => "other",
            Self::Hidden => "hidden",
        }
    }
}

impl Flood {
    /// Of this guest, in the calling thread's network namespace.
    pub fn here() -> Result<Self> {
        const NETNS: &str = "/proc/thread-self/ns/net";
        let netns = fs::metadata(NETNS).map_err(|e| Error::file("look at", NETNS, e))?.ino();
        let state = PathBuf::from("/run/vcc-guest");
        Ok(Self {
            name: NAME.into(),
            available: kernel::AVAILABLE.into(),
            btf: kernel::BTF.into(),
            default: DefaultControl {
                sysctl: "/proc/sys/net/ipv4/tcp_congestion_control".into(),
                remembered: state.join(format!("default-{netns}")),
            },
            state,
            pins: Pins { directory: "/sys/fs/bpf/vcc-guest".into(), name: NAME.into() },
            module: Module {
                name: format!("tcp_{NAME}"),
                modules: "/sys/module".into(),
                modprobe: "modprobe".into(),
                rmmod: "rmmod".into(),
            },
        })
    }

    /// Registers it unless it is registered, and makes it the default of new connections. If it is only to be
    /// available, the default before is the default again.
    pub fn install(&self, form: Form, only_available: bool) -> Result<Installed> {
        let _lock = self.lock()?;
        let found = self.provider()?;
        let was_registered = found.is_some();
        let provider = match found {
            Some(provider) => self.in_form(form, provider)?,
            None => self.register(form)?,
        };
        if only_available {
            self.default.give_back(&self.name, &self.available()?)?;
        } else {
            self.default.take(&self.name)?;
        }
        let (default, before) = (self.default.current()?, self.default.before()?);
        Ok(Installed { provider, was_registered, default, before })
    }

    /// Gives connections the windows that the host reports on the channel, and NewReno's without its news, until
    /// `stop` is readable. It must be installed in the form that needs a lease.
    pub fn follow(
        &self,
        channel: &Path,
        stop: &impl AsRawFd,
        report: impl FnMut(Heard),
    ) -> Result<()> {
        let reports = Reports::open(&self.pins.leases(), &self.pins.flows())?;
        channel::follow(reports, || open(channel), stop, report).map_err(|error| match error {
            FollowError::Open(source) => Error::Channel { path: channel.into(), source },
            FollowError::Wait(error) => Error::Follow { why: error.to_string() },
            FollowError::Here(error) => error,
        })
    }

    /// # Errors
    /// The channel is not there, or another process follows it.
    pub fn require_channel(channel: &Path) -> Result<()> {
        open(channel).map(drop).map_err(|source| Error::Channel { path: channel.into(), source })
    }

    /// Makes the default before the default again, and unregisters it. Connections keep it to their end.
    pub fn remove(&self) -> Result<Removed> {
        let _lock = self.lock()?;
        let default = self.default.give_back(&self.name, &self.available()?)?;
        let unregistered = match self.provider()? {
            None => {
                // Of an interrupted registration.
                self.pins.remove()?;
                Unregistered::WasNot
            }
            Some(Provider::Module) => match self.module.unload()? {
                Unloading::Done => Unregistered::Done(Provider::Module),
                Unloading::InUse(users) => Unregistered::InUse(users),
            },
            Some(provider @ Provider::Bpf(_)) => {
                self.pins.remove()?;
                self.wait_until_gone()?;
                Unregistered::Done(provider)
            }
            Some(provider) => Unregistered::NotOurs(provider),
        };
        Ok(Removed { default, unregistered })
    }

    pub fn status(&self) -> Result<Status> {
        let provider = self.provider()?;
        let connections = Connections::count(&self.name);
        Ok(Status {
            kernel: kernel::release(),
            lacks: kernel::struct_ops(&self.btf).err(),
            registered: provider.as_ref().map(Provider::word),
            pin: match &provider {
                Some(Provider::Bpf(pin)) => Some(pin.clone()),
                _ => None,
            },
            channel: self.channel_state(provider.as_ref())?,
            provider,
            default: self.default.current()?,
            default_before: self.default.before()?,
            connections_unknown: connections.as_ref().err().map(ToString::to_string),
            connections: connections.ok(),
        })
    }

    fn channel_state(&self, provider: Option<&Provider>) -> Result<Option<ChannelState>> {
        if !matches!(provider, Some(Provider::Bpf(_))) || !self.pins.needs_lease() {
            return Ok(None);
        }
        let reports = Reports::open(&self.pins.leases(), &self.pins.flows())?;
        Ok(Some(match reports.is_leased(now_ns())? {
            true => ChannelState::Leased,
            false => ChannelState::NotLeased,
        }))
    }

    /// Held by the one command at a time that changes something.
    fn lock(&self) -> Result<Lock> {
        let lock = Lock::wait_for(&self.state).map_err(|e| Error::file("lock", &self.state, e))?;
        open_own_directory(&self.state).map_err(|e| Error::file("use", &self.state, e))?;
        Ok(lock)
    }

    fn available(&self) -> Result<Vec<String>> {
        kernel::available_in(&self.available)
    }

    fn is_registered(&self) -> Result<bool> {
        Ok(self.available()?.contains(&self.name))
    }

    /// What registers it now.
    fn provider(&self) -> Result<Option<Provider>> {
        if !self.is_registered()? {
            return Ok(None);
        }
        Ok(Some(match (self.module.presence(), self.pins.find()?) {
            (Presence::Loaded, _) => Provider::Module,
            (Presence::BuiltIn, _) => Provider::BuiltIn,
            (Presence::Absent, Found::Pin(pin)) => Provider::Bpf(pin),
            (Presence::Absent, Found::Nothing) => Provider::Other,
            (Presence::Absent, Found::Hidden) => Provider::Hidden,
        }))
    }

    /// What registers it, if that is in this form.
    fn in_form(&self, form: Form, provider: Provider) -> Result<Provider> {
        let has = match &provider {
            Provider::Bpf(_) if self.pins.needs_lease() => Form::Leased,
            _ => Form::Unconditional,
        };
        let other = |how, unit| Error::OtherForm { name: self.name.clone(), how, unit };
        match (form, has) {
            (Form::Leased, Form::Unconditional) if !matches!(provider, Provider::Bpf(_)) => {
                Err(Error::ChannelNeedsBpf {
                    name: self.name.clone(),
                    why: format!("another provider has registered it ({})", provider.word()),
                })
            }
            (Form::Leased, Form::Unconditional) => Err(other("without", "vcc-guest")),
            (Form::Unconditional, Form::Leased) => Err(other("with", "vcc-guest-channel")),
            _ => Ok(provider),
        }
    }

    /// By BPF, or else by the module, which has no channel.
    fn register(&self, form: Form) -> Result<Provider> {
        let why = match kernel::struct_ops(&self.btf) {
            Err(why) => why,
            Ok(_) => match self.register_bpf(form) {
                Ok(pin) => return Ok(Provider::Bpf(pin)),
                Err(error) if !is_of_the_kernel(&error) => return Err(error),
                Err(error) => in_a_guest(error),
            },
        };
        if form == Form::Leased {
            return Err(Error::ChannelNeedsBpf { name: self.name.clone(), why });
        }
        let failed = |module| Error::NoProvider {
            name: self.name.clone(),
            why,
            module,
            release: kernel::release(),
        };
        if let Err(module) = self.module.load() {
            return Err(failed(module));
        }
        match self.is_registered()? {
            true => Ok(Provider::Module),
            false => Err(failed(format!("{} was loaded, but registers nothing", self.module.name))),
        }
    }

    /// Returns the path of the pin.
    fn register_bpf(&self, form: Form) -> Result<PathBuf> {
        let (control, maps) = match form {
            Form::Unconditional => (find(NAME).expect("it is in the list"), vec![]),
            Form::Leased => {
                let maps = vec![(LEASES, self.pins.leases()), (FLOWS, self.pins.flows())];
                (&LEASED_FLOOD, maps)
            }
        };
        let begin = || {
            // Of an interrupted registration, or detached by others: nothing is registered under the name.
            self.pins.remove()?;
            self.pins.create_directory()
        };
        begin()?;
        let (link, map) = (self.pins.link(), self.pins.map());
        let registered = match control.register_pinned(&self.name, &link, &maps) {
            // Kernels before 6.4 refuse struct_ops with links. Others refuse both for the same reason.
            Err(error) if is_of_the_kernel(&error) => {
                begin()?;
                return self.conclude(control.register_map_pinned(&self.name, &map, &maps), map);
            }
            other => other,
        };
        self.conclude(registered, link)
    }

    fn conclude(&self, registered: Result<bool>, pin: PathBuf) -> Result<PathBuf> {
        if let Ok(true) = registered {
            return Ok(pin);
        }
        // The first error is reported.
        let _ = self.pins.remove();
        Err(registered.err().unwrap_or_else(|| Error::Taken { name: self.name.clone() }))
    }

    fn wait_until_gone(&self) -> Result<()> {
        const LOOK: Duration = Duration::from_millis(10);
        let until = Instant::now() + PATIENCE;
        while self.is_registered()? {
            if Instant::now() > until {
                return Err(Error::Held { name: self.name.clone(), seconds: PATIENCE.as_secs() });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Does the kernel lack something, so that a module may help?
fn is_of_the_kernel(error: &Error) -> bool {
    match error {
        Error::Register { .. } => true,
        Error::Bpf(error) => {
            matches!(error, vcc_port::Error::Verifier { .. } | vcc_port::Error::System { .. })
        }
        _ => false,
    }
}

/// An error of BPF without the advice for hosts.
fn in_a_guest(error: Error) -> String {
    match error {
        Error::Bpf(vcc_port::Error::Verifier { refusal, .. }) => format!(
            "the verifier of Linux {} refuses its program {}: {}; {}",
            refusal.release, refusal.program, refusal.last_line, refusal.log
        ),
        Error::Register { why, .. } => why,
        other => other.to_string(),
    }
}
