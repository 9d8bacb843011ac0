//! A device with vcc on it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use libbpf_rs::{Link, MapCore};
use vcc_engine::{Mode, Params};

use crate::datapath::Maps;
use crate::device::{self, Device};
use crate::pins::{self, Pin, Role};
use crate::tcx::{self, Hook};
use crate::{
    AttachOptions, Counters, Datapath, Emitter, Error, Flow, FlowId, Program, Result, RunTime,
    SharedPolicy, Trace, counters, flows, kernel, params, run_time, sweep,
};

/// An attachment. Dropped, it is removed, unless it is pinned.
pub struct Port {
    device: Device,
    links: [Link; 2],
    /// None: another version of vcc made them.
    maps: Option<Maps>,
    /// None: as above.
    sweep: Option<OwnedFd>,
    pin: Option<Pin>,
}

impl Port {
    /// Attaches to a device of the calling thread's network namespace: in both directions, or
    /// not at all. Programs that are there already stay, and run first.
    pub fn attach(device: &str, options: &AttachOptions) -> Result<Self> {
        Self::attach_with(device, || Datapath::load(options))
    }

    /// The same, but that each connection is treated by its rule. No other port of this policy has
    /// the same `index`, which is below [`crate::PORTS_MAX`]; of `options` only the size of the table
    /// counts, and whether anything is emitted.
    pub fn attach_under(
        policy: &SharedPolicy,
        index: u32,
        device: &str,
        options: &AttachOptions,
    ) -> Result<Self> {
        Self::attach_with(device, || Datapath::load_under(policy, index, options))
    }

    fn attach_with(device: &str, load: impl FnOnce() -> Result<Datapath>) -> Result<Self> {
        let device = Device::named(device)?;
        device.require_ethernet()?;
        let revision = require_unattached(&device)?;
        let datapath = load()?;
        let sweep = sweep::keep(&datapath.program(Program::Sweep)?)?;
        // The revision makes the kernel refuse whoever lost a race of two attachments.
        let links = [
            attach_one(&datapath, &device, Hook::FromGuest, revision)?,
            attach_one(&datapath, &device, Hook::ToGuest, 0)?,
        ];
        Ok(Self { device, links, maps: Some(datapath.maps), sweep: Some(sweep), pin: None })
    }

    /// The attachment outlives this value and this process.
    pub fn pin(&mut self) -> Result<()> {
        let _lock = pins::lock()?;
        self.pin_locked()
    }

    /// Pins all of them, or none.
    pub fn pin_all(ports: &mut [Self]) -> Result<()> {
        let _lock = pins::lock()?;
        let result = ports.iter_mut().try_for_each(Self::pin_locked);
        if result.is_err() {
            for pin in ports.iter_mut().filter_map(|port| port.pin.take()) {
                // The error that is told is the first; the rest is swept up later.
                let _ = pin.remove();
            }
        }
        result
    }

    fn pin_locked(&mut self) -> Result<()> {
        let pin = Pin::of(&self.device);
        let (Some(maps), Some(sweep)) = (&mut self.maps, &self.sweep) else {
            return Err(other_version(&self.device));
        };
        pin.create(&mut self.links, maps, sweep)?;
        self.pin = Some(pin);
        Ok(())
    }

    /// The pinned attachment to a device of the calling thread's network namespace.
    pub fn open(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        let pin = pins::find(&device)?;
        Self::from_pin(pin.ok_or(Error::NotAttached { device: device.name })?)
    }

    /// All pinned attachments, those of other network namespaces too.
    pub fn list() -> Result<Vec<Self>> {
        pins::all()?.into_iter().map(Self::from_pin).collect()
    }

    /// Refuses where another version of vcc pinned a port, with the first such.
    pub fn require_understood() -> Result<()> {
        for pin in pins::all()? {
            if pin.is_complete() && pin.open_maps()?.is_none() {
                return Err(other_version(&pin.device));
            }
        }
        Ok(())
    }

    /// Removes what devices that have gone left pinned, with what their flows held of pools; returns
    /// their names. What else processes that were killed have left is put right without a word.
    pub fn sweep() -> Result<Vec<String>> {
        let gone = pins::sweep(|pin| {
            // What cannot be opened holds nothing that could be given back.
            let port = Self::from_pin(pin.clone()).ok().filter(|port| port.maps.is_some());
            let _ = port.map(|port| port.forget_flows());
        })?;
        for pin in pins::all()? {
            // One that is being made or removed at this moment has no trace to end.
            if let Ok(port) = Self::from_pin(pin) {
                port.end_orphaned_trace()?;
            }
        }
        Ok(gone)
    }

    fn end_orphaned_trace(&self) -> Result<()> {
        let (Some(maps), Some(pin)) = (&self.maps, &self.pin) else { return Ok(()) };
        if params::read(&maps.params)?.0.trace == 0 {
            return Ok(());
        }
        let Some(_role) = pin.take(Role::Tracing)? else { return Ok(()) };
        params::change(&maps.params, true, |params| params.0.trace = 0)
    }

    fn from_pin(pin: Pin) -> Result<Self> {
        let mut device = pin.device.clone();
        if device.netns_inode == device::netns_inode()? {
            device.name = device::name_of(device.ifindex).unwrap_or(device.name);
        }
        let links = pin.open_links()?;
        let maps = pin.open_maps()?;
        let sweep = pin.open_sweep();
        Ok(Self { device, links, maps, sweep, pin: Some(pin) })
    }

    /// Removes the attachment at once. Connections whose windows were translated will crawl:
    /// see [`Port::drain`].
    pub fn detach(self) -> Result<()> {
        let failed = |e| Error::system(format!("detach from `{}`", self.device.name), e);
        let _lock = self.pin.is_some().then(pins::lock).transpose()?;
        for link in &self.links {
            link.detach().map_err(failed)?;
        }
        if let Some(pin) = &self.pin {
            pin.remove()?;
        }
        Ok(())
    }

    /// Takes no new connections from now on, and says how many of those that are there still
    /// need the translation.
    pub fn drain(&self) -> Result<usize> {
        self.set_mode(Mode::Drain)?;
        Ok(self.flows()?.iter().filter(|flow| flow.depends_on_translation()).count())
    }

    /// The pinned attachment to a device, if there is one and it drains.
    pub fn draining(device: &str) -> Result<Option<Self>> {
        let port = match Self::open(device) {
            Ok(port) => port,
            Err(Error::NotAttached { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let drains = port.params()?.0.mode == Mode::Drain.number();
        Ok(drains.then_some(port))
    }

    /// Takes new connections again, with these options but for the table's size; those that are
    /// there keep the underlay with which they began.
    pub fn resume(&self, options: &AttachOptions) -> Result<()> {
        self.change_params(|params| {
            let trace = params.0.trace;
            *params = options.treatment.params();
            params.0.trace = trace;
        })
    }

    /// No longer, if another process detached it or its device has gone.
    pub fn is_attached(&self) -> Result<bool> {
        let [from_guest, to_guest] = &self.links;
        Ok(tcx::is_attached(from_guest)? && tcx::is_attached(to_guest)?)
    }

    pub fn device(&self) -> &str {
        &self.device.name
    }

    /// The kernel's number of the device, in the device's network namespace.
    pub fn ifindex(&self) -> u32 {
        self.device.ifindex
    }

    /// How many connections this port tracks at a time.
    pub fn max_flows(&self) -> Result<u32> {
        Ok(self.maps()?.flows.max_entries())
    }

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps()?.flows)
    }

    /// One connection; None if the port does not know it.
    pub fn flow(&self, id: &FlowId) -> Result<Option<Flow>> {
        let state = flows::look_up(&self.maps()?.flows, &id.key())?;
        Ok(state.map(|state| Flow::new(*id, state)))
    }

    /// Records each ACK of one connection, or of all. One recording at a time.
    pub fn trace(&self, flow: Option<FlowId>) -> Result<Trace> {
        let maps = self.maps()?;
        let role = match &self.pin {
            Some(pin) => Some(pin.take(Role::Tracing)?.ok_or_else(|| self.already_traced())?),
            None if self.params()?.0.trace != 0 => return Err(self.already_traced()),
            None => None,
        };
        Trace::start(maps, flow, role)
    }

    /// Sends what the engine decides to send to the guest: for a port that was attached with
    /// [`vcc_engine::Treatment::emit`], from the network namespace where its device is. One at a time.
    pub fn emitter(&self) -> Result<Emitter> {
        let device = || self.device.name.clone();
        let maps = self.maps()?;
        if !self.is_here()? {
            return Err(Error::InOtherNamespace { device: device() });
        }
        if !self.emits()? {
            return Err(Error::NothingToEmit { device: device() });
        }
        let taken = || Error::AlreadyEmitting { device: device() };
        let role = match &self.pin {
            Some(pin) => Some(pin.take(Role::Emitting)?.ok_or_else(taken)?),
            None => None,
        };
        Emitter::start(&self.device, maps, role)
    }

    /// Whether it takes an [`Emitter`] to do all that the port was attached for.
    pub fn emits(&self) -> Result<bool> {
        Ok(self.params()?.0.emit != 0)
    }

    /// Whether an [`Emitter`] is wanted from now on: for a port under a policy, whose rules say
    /// what is to be sent.
    pub fn set_emits(&self, emits: bool) -> Result<()> {
        self.change_params(|params| params.0.emit = emits.into())
    }

    /// Whether the device is in the calling thread's network namespace.
    pub fn is_here(&self) -> Result<bool> {
        Ok(self.device.netns_inode == device::netns_inode()?)
    }

    fn already_traced(&self) -> Error {
        Error::AlreadyTraced { device: self.device.name.clone() }
    }

    pub fn counters(&self) -> Result<Counters> {
        counters::read(&self.maps()?.counters)
    }

    /// Of both programs, as far as [`crate::RunTimes`] had it counted.
    pub fn run_time(&self) -> Result<RunTime> {
        self.links.iter().try_fold(RunTime::default(), |sum, link| {
            let info = link.info().map_err(|e| Error::system("read an attachment", e))?;
            Ok(sum + run_time::of_program(info.prog_id)?)
        })
    }

    pub fn params(&self) -> Result<Params> {
        params::read(&self.maps()?.params)
    }

    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        self.change_params(|params| params.0.mode = mode.number())
    }

    fn change_params(&self, change: impl FnOnce(&mut Params)) -> Result<()> {
        params::change(&self.maps()?.params, self.pin.is_some(), change)
    }

    /// Its index among the ports of the policy; None where it was attached without one.
    pub fn index(&self) -> Result<Option<u32>> {
        let told = self.maps()?.constants().ok_or_else(|| other_version(&self.device))?;
        Ok((told.by_policy != 0).then_some(told.index))
    }

    /// The programs of this version of vcc run from the next segment on, over the same flows; the
    /// same programs are left alone. An error before the first of the two was replaced changes
    /// nothing. `policy` is the one that the port was attached under, if it was. Returns whether
    /// there was anything to replace.
    pub fn take_over(&mut self, policy: Option<&SharedPolicy>) -> Result<bool> {
        self.take_over_if(policy, |running, ours| running != ours)
    }

    /// Of the programs that are attached.
    fn running_tags(&self) -> Result<[[u8; 8]; 2]> {
        let mut tags = [[0; 8]; 2];
        for (tag, link) in tags.iter_mut().zip(&self.links) {
            let info = link.info().map_err(|e| Error::system("read an attachment", e))?;
            let running = libbpf_rs::Program::fd_from_id(info.prog_id)
                .map_err(|e| Error::system("find an attached program", e))?;
            *tag = tcx::program_tag(running.as_fd())
                .map_err(|e| Error::system("read an attached program", e))?;
        }
        Ok(tags)
    }

    fn take_over_if(
        &mut self,
        policy: Option<&SharedPolicy>,
        stale_if: impl Fn([u8; 8], [u8; 8]) -> bool,
    ) -> Result<bool> {
        let failed = |e: io::Error| Error::system("take a port over", e);
        let _lock = self.pin.is_some().then(pins::lock).transpose()?;
        let running = self.running_tags()?;
        // Loading takes the verifier a while, and is the same for every port.
        static OURS: OnceLock<[[u8; 8]; 2]> = OnceLock::new();
        let is_stale =
            |ours: &[[u8; 8]; 2]| running.iter().zip(ours).any(|(a, b)| stale_if(*a, *b));
        if OURS.get().is_some_and(|ours| !is_stale(ours)) {
            return Ok(false);
        }
        let Some(maps) = self.maps.as_mut() else { return Err(other_version(&self.device)) };
        let datapath = Datapath::load_over(maps, policy)?;
        let mut ours = [[0; 8]; 2];
        for (tag, hook) in ours.iter_mut().zip(Hook::BOTH) {
            *tag = tcx::program_tag(datapath.program(hook.into())?.as_fd()).map_err(failed)?;
        }
        let ours = OURS.get_or_init(|| ours);
        let mut stale = Vec::new();
        for (at, hook) in Hook::BOTH.into_iter().enumerate() {
            if stale_if(running[at], ours[at]) {
                stale.push((at, datapath.program(hook.into())?));
            }
        }
        let replaced = !stale.is_empty();
        for (at, program) in stale {
            self.links[at]
                .update_prog(&program)
                .map_err(|e| Error::system("replace a program of a port", e))?;
        }
        if replaced {
            let sweep = sweep::keep(&datapath.program(Program::Sweep)?)?;
            if let Some(pin) = &self.pin {
                pin.replace_sweep(&sweep)?;
            }
            self.sweep = Some(sweep);
        }
        Ok(replaced)
    }

    /// Brings every flow under the edition of the policy that holds. Returns how many there are.
    pub fn judge_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, false)
    }

    /// Forgets every flow, with what it holds of a pool: for a port whose device has gone.
    pub fn forget_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, true)
    }

    fn sweeper(&self) -> Result<&OwnedFd> {
        self.sweep.as_ref().ok_or_else(|| other_version(&self.device))
    }

    fn maps(&self) -> Result<&Maps> {
        self.maps.as_ref().ok_or_else(|| other_version(&self.device))
    }
}

fn other_version(device: &Device) -> Error {
    Error::OtherVersion { device: device.name.clone() }
}

/// The revision of the first hook, if vcc is at neither.
fn require_unattached(device: &Device) -> Result<u64> {
    let mut revisions = [0; 2];
    for (hook, revision) in Hook::BOTH.into_iter().zip(&mut revisions) {
        let attached = tcx::attached(device.ifindex, hook).map_err(|e| refusal(device, e))?;
        let ours = |id: &u32| tcx::program_name(*id).as_deref() == Some(hook.program_name());
        if attached.program_ids.iter().any(ours) {
            let device_name = device.name.clone();
            return Err(match pins::find(device)? {
                Some(_) => Error::AlreadyAttached { device: device_name },
                None => Error::HeldByProcess { device: device_name },
            });
        }
        *revision = attached.revision;
    }
    Ok(revisions[0])
}

fn attach_one(datapath: &Datapath, device: &Device, hook: Hook, revision: u64) -> Result<Link> {
    let program = datapath.program(hook.into())?;
    tcx::attach(&program, device.ifindex, revision).map_err(|e| refusal(device, e))
}

fn refusal(device: &Device, error: io::Error) -> Error {
    refusal_of(&kernel::release(), device, error)
}

/// What an error number of the hook means.
fn refusal_of(release: &str, device: &Device, error: io::Error) -> Error {
    let doing = format!("attach to `{}`", device.name);
    let system = |why: &str| Error::System { doing: doing.clone(), why: why.into() };
    match error.raw_os_error() {
        Some(libc::EINVAL) if kernel::version(release) < Some(kernel::OLDEST) => {
            Error::NoTcx { release: release.into() }
        }
        Some(libc::ENODEV) => Error::NoSuchDevice { device: device.name.clone() },
        Some(libc::ESTALE) => {
            system("somebody else attached a program to it at the same moment; try again")
        }
        Some(libc::ERANGE) => {
            system("it has no room for another program (`bpftool net` lists them)")
        }
        _ => Error::system(doing, error),
    }
}

impl Drop for Port {
    /// At once, not when the last descriptor is closed: a child that is just being forked holds
    /// one until it executes its program.
    fn drop(&mut self) {
        if self.pin.is_none() {
            for link in &self.links {
                let _ = link.detach();
            }
        }
    }
}

#[cfg(test)]
mod tests;
