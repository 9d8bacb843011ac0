//! A device with vcc on it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use libbpf_rs::{Link, MapCore};
use vcc_engine::{Mode, Params};

use crate::datapath::Maps;
use crate::device::{self, Device};
use crate::pins::{self, Pin, Role};
use crate::sweep::{self, Sweep};
use crate::tcx::{self, Hook, Tag};
use crate::{
    AttachOptions, Counters, Datapath, Emitter, Error, Flow, FlowId, Program, Result, RunTime,
    SharedPolicy, Trace, Usage, counters, flows, kernel, params, run_time, usage,
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

    /// All pinned attachments, those of other network namespaces too; but for those that are being
    /// made or removed at this moment.
    pub fn list() -> Result<Vec<Self>> {
        let mut ports = Vec::new();
        for pin in pins::all()?.into_iter().filter(Pin::is_complete) {
            match Self::from_pin(pin.clone()) {
                Ok(port) => ports.push(port),
                Err(_) if !pin.is_complete() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ports)
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
    /// see [`Port::drain`]. Returns how many were forgotten. What somebody else has detached, and perhaps
    /// attached anew, is left as it is.
    pub fn detach(self) -> Result<u32> {
        let failed = |e| Error::system(format!("detach from `{}`", self.device.name), e);
        let _lock = self.pin.is_some().then(pins::lock).transpose()?;
        for link in &self.links {
            link.detach().map_err(failed)?;
        }
        // No program runs any more that would give back what its flows hold of pools.
        let forgotten = self.sweep.as_ref().map_or(Ok(0), |sweep| sweep::run(sweep, Sweep::Forget));
        if let Some(pin) = self.pin.as_ref().filter(|pin| pin.is_of(&self.links)) {
            pin.remove()?;
        }
        forgotten
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

    /// How many connections it tracks now, without reading them.
    pub fn usage(&self) -> Result<Usage> {
        usage::read(&self.maps()?.usage)
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

    /// Whether the device has come back to the calling thread's network namespace, where another may
    /// have had its number meanwhile.
    pub fn is_back(&self) -> Result<bool> {
        let failed = |e| Error::system("read what is attached", e);
        let ours = self.links[0].info().map_err(|e| Error::system("read an attachment", e))?;
        let here = tcx::attached(self.device.ifindex, Hook::FromGuest).map_err(failed)?;
        Ok(here.program_ids.contains(&ours.prog_id))
    }

    /// Whether it takes no new connections.
    pub fn drains(&self) -> Result<bool> {
        Ok(params::read(&self.maps()?.params)?.0.mode == Mode::Drain.number())
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
        self.take_over_if(policy, |running, ours| running != Some(ours))
    }

    /// Of the programs that are attached, and of the sweep, which may be missing.
    fn running_tags(&self) -> Result<[Option<Tag>; 3]> {
        let failed = |e| Error::system("read what is attached", e);
        let [from_guest, to_guest] = &self.links;
        Ok([
            Some(tcx::attached_tag(from_guest).map_err(failed)?),
            Some(tcx::attached_tag(to_guest).map_err(failed)?),
            self.sweep
                .as_ref()
                .map(|sweep| tcx::program_tag(sweep.as_fd()))
                .transpose()
                .map_err(failed)?,
        ])
    }

    fn take_over_if(
        &mut self,
        policy: Option<&SharedPolicy>,
        stale_if: impl Fn(Option<Tag>, Tag) -> bool,
    ) -> Result<bool> {
        let failed = |e: io::Error| Error::system("take a port over", e);
        let _lock = self.pin.is_some().then(pins::lock).transpose()?;
        let running = self.running_tags()?;
        // Loading takes the verifier a while, and is the same for every port.
        static OURS: OnceLock<[Tag; 3]> = OnceLock::new();
        let is_stale = |ours: &[Tag; 3]| running.iter().zip(ours).any(|(a, b)| stale_if(*a, *b));
        if OURS.get().is_some_and(|ours| !is_stale(ours)) {
            return Ok(false);
        }
        let Some(maps) = self.maps.as_mut() else { return Err(other_version(&self.device)) };
        let datapath = Datapath::load_over(maps, policy)?;
        let [from_guest, to_guest] = Hook::BOTH.map(|hook| datapath.program(hook.into()));
        let programs = [from_guest?, to_guest?, datapath.program(Program::Sweep)?];
        let mut ours = [Tag::default(); 3];
        for (tag, program) in ours.iter_mut().zip(&programs) {
            *tag = tcx::program_tag(program.as_fd()).map_err(failed)?;
        }
        if !is_stale(OURS.get_or_init(|| ours)) {
            return Ok(false);
        }
        let [from_guest, to_guest, sweep] = &programs;
        // First what is missed least, should we be killed in between: the next takes over the rest.
        let sweep = sweep::keep(sweep)?;
        if let Some(pin) = &self.pin {
            pin.replace_sweep(&sweep)?;
        }
        for (link, program) in self.links.iter_mut().zip([from_guest, to_guest]) {
            link.update_prog(program)
                .map_err(|e| Error::system("replace a program of a port", e))?;
        }
        sweep::start_timer(&sweep)?;
        sweep::run(&sweep, Sweep::Judge)?;
        self.sweep = Some(sweep);
        Ok(true)
    }

    /// Brings every flow under the edition of the policy that holds, but for those whose handshake
    /// goes on: they follow when it has ended. Returns how many there are.
    pub fn judge_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, Sweep::Judge)
    }

    /// Brings all of them under it. To be done before another edition is written where the one
    /// before lies: see [`SharedPolicy::apply`].
    pub fn settle_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, Sweep::Settle)
    }

    /// Forgets every flow, with what it holds of a pool: for a port whose device has gone.
    pub fn forget_flows(&self) -> Result<u32> {
        sweep::run(self.sweeper()?, Sweep::Forget)
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
    if pins::is_attached(device)? {
        return Err(Error::AlreadyAttached { device: device.name.clone() });
    }
    let mut revisions = [0; 2];
    for (hook, revision) in Hook::BOTH.into_iter().zip(&mut revisions) {
        let attached = tcx::attached(device.ifindex, hook).map_err(|e| refusal(device, e))?;
        let ours = |id: &u32| tcx::program_name(*id).as_deref() == Some(hook.program_name());
        if attached.program_ids.iter().any(ours) {
            return Err(Error::HeldByProcess { device: device.name.clone() });
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
