//! The datapath of one port in the kernel, attached to no device: for tests and benchmarks.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::AsFd;

use libbpf_rs::{Object, ProgramMut};
use vcc_engine::{Delays, Mode, sys};
use vcc_policy::Tunnels;

use crate::flows::Flow;
use crate::host::{Host, Room};
use crate::maps::Maps;
use crate::policy::SharedPolicy;
use crate::sweep::Sweep;
use crate::test_run::{self, Context, RunOutput};
use crate::{
    AttachOptions, Counters, Error, Program, Result, Usage, counts, flows, object, params, tcx,
    usage,
};

/// A host with one port, or with several of which one at a time is used.
pub struct Datapath {
    host: Host,
    programs: Object,
    /// The programs of each port, by its index.
    of_ports: BTreeMap<u32, Object>,
    index: u32,
}

impl Datapath {
    /// All connections have the treatment of `options`.
    pub fn load(options: &AttachOptions) -> Result<Self> {
        Self::load_with(None, options, false)?.with_timer()
    }

    /// Like [`Self::load`], but no timer ever changes a flow: for tests that compare states byte
    /// for byte.
    #[doc(hidden)]
    pub fn load_without_timer(options: &AttachOptions) -> Result<Self> {
        Self::load_with(None, options, false)
    }

    /// Like [`Self::load`], or like [`Self::load_under`] with a policy, with the yardsticks of
    /// benchmarks too, which no port needs.
    #[doc(hidden)]
    pub fn load_with_yardsticks(
        policy: Option<(&SharedPolicy, u32)>,
        options: &AttachOptions,
    ) -> Result<Self> {
        Self::load_with(policy, options, true)?.with_timer()
    }

    /// Each connection has the treatment of its rule. `index` is the port's among those of the
    /// policy.
    pub fn load_under(policy: &SharedPolicy, index: u32, options: &AttachOptions) -> Result<Self> {
        Self::load_with(Some((policy, index)), options, false)?.with_timer()
    }

    fn load_with(
        policy: Option<(&SharedPolicy, u32)>,
        options: &AttachOptions,
        yardsticks: bool,
    ) -> Result<Self> {
        let (policy, index) = policy.unzip();
        let (host, programs) = Host::load(policy, Room::for_one(options.max_flows), yardsticks)?;
        let at = index.unwrap_or(0);
        host.enter(at, &options.port(index.is_some()))?;
        let of_ports = BTreeMap::from([(at, host.port_programs(at)?)]);
        Ok(Self { host, programs, of_ports, index: at })
    }

    /// From here on, the port of the host with this index is used. If there is none, it is created:
    /// without a policy, and with a timer.
    #[doc(hidden)]
    pub fn use_port(&mut self, index: u32, options: &AttachOptions) -> Result<()> {
        if let Entry::Vacant(new) = self.of_ports.entry(index) {
            self.host.enter(index, &options.port(false))?;
            new.insert(self.host.port_programs(index)?);
            self.host.open_wheel(index)?;
        }
        self.index = index;
        Ok(())
    }

    fn with_timer(self) -> Result<Self> {
        self.start_timer()?;
        Ok(self)
    }

    /// Lets the flows expire, of which there are none yet.
    #[doc(hidden)]
    pub fn start_timer(&self) -> Result<()> {
        self.host.open_wheel(self.index)
    }

    /// The port leaves its host, with its flows and its timer.
    #[doc(hidden)]
    pub fn end(&self) -> Result<()> {
        self.host.leave(self.index).map(drop)
    }

    /// After [`Self::end`] of one without a policy, another port takes its place, without a timer. The
    /// table stays as large as it was.
    #[doc(hidden)]
    pub fn begin_anew(&self, options: &AttachOptions) -> Result<()> {
        self.host.enter(self.index, &options.port(false)).map(drop)
    }

    /// As [`crate::Port::set_params`], of the mode alone.
    #[doc(hidden)]
    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        let ports = &self.maps().ports;
        let mut port = params::read(ports, self.index)?;
        port.params.mode = mode.number();
        params::write(ports, self.index, &port)
    }

    /// As [`crate::Port::set_inside`].
    #[doc(hidden)]
    pub fn set_inside(&self, tunnels: Tunnels) -> Result<()> {
        let ports = &self.maps().ports;
        let mut port = params::read(ports, self.index)?;
        params::look_into(&mut port, tunnels);
        params::write(ports, self.index, &port)
    }

    /// The loaded programs, and how many instructions the verifier processed for each.
    pub fn verified(&self) -> Result<Vec<(String, u32)>> {
        let programs = self.programs.progs().filter(|program| program.autoload());
        programs
            .chain(self.of_ports[&self.index].progs())
            .map(|program| {
                let name = program.name().to_string_lossy().into_owned();
                let info = tcx::program_info(program.as_fd());
                let info = info.map_err(|e| Error::system(format!("read about {name}"), e))?;
                Ok((name, info.verified_insns))
            })
            .collect()
    }

    /// Runs a program on one Ethernet frame, without a device. A `gso_size` other than 0 makes
    /// the frame a super-segment.
    pub fn run(&self, program: Program, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        self.run_in(program, frame, Context { gso_size, ..Context::default() })
    }

    /// Runs the second pass of a clone of a segment from the guest, which makes it a FACK.
    pub fn run_clone(&self, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        let context = Context { gso_size, mark: sys::FACK_MARK, ..Context::default() };
        self.run_in(Program::FromGuest, frame, context)
    }

    fn run_in(&self, program: Program, frame: &[u8], context: Context) -> Result<RunOutput> {
        test_run::run(self.program(program)?.as_fd(), frame, context).map_err(|e| {
            let doing = format!("run {} on a frame of {} bytes", program.name(), frame.len());
            Error::system(doing, e)
        })
    }

    /// Brings every flow under the edition of the policy that is in force. Returns how many there
    /// are.
    pub fn judge_flows(&self) -> Result<u32> {
        self.host.sweep(self.index, Sweep::Judge)
    }

    /// Like [`Self::judge_flows`], but for flows in their handshake too.
    pub fn settle_flows(&self) -> Result<u32> {
        self.host.sweep(self.index, Sweep::Settle)
    }

    /// Forgets every flow, and returns what it holds of a pool.
    pub fn forget_flows(&self) -> Result<u32> {
        self.host.sweep(self.index, Sweep::Forget)
    }

    /// The number of flows, without reading them.
    pub fn usage(&self) -> Result<Usage> {
        usage::read(&self.maps().usage, self.index)
    }

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps().flows, self.index)
    }

    pub fn counters(&self) -> Result<Counters> {
        counts::counters(&self.maps().counts, self.index)
    }

    pub fn delays(&self) -> Result<Delays> {
        counts::delays(&self.maps().counts, self.index)
    }

    pub(crate) fn maps(&self) -> &Maps {
        &self.host.maps
    }

    pub(crate) fn program(&self, program: Program) -> Result<ProgramMut<'_>> {
        let object = match program {
            Program::FromGuest | Program::ToGuest => &self.of_ports[&self.index],
            Program::ParseFromGuest | Program::ParseToGuest | Program::Sweep | Program::Turn => {
                &self.programs
            }
        };
        object::program(object, program.name())
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::{MapCore, MapFlags};
    use vcc_engine::Params;
    use vcc_frames::Packet;
    use vcc_frames::wire::{ACK, RST, SYN};
    use vcc_testing::can_attach;

    use super::*;
    use crate::counters;

    const NEXT: i32 = -1;
    const DROP: i32 = 2;
    const FREE: u32 = 0;
    const HELD: u32 = 1;
    const GONE: u32 = 2;

    fn set_lock(datapath: &Datapath, key: &[u8], lock: u32) {
        let flows = &datapath.maps().flows;
        let mut entry = flows.lookup(key, MapFlags::ANY).expect("read").expect("there");
        entry[..4].copy_from_slice(&lock.to_ne_bytes());
        flows.update(key, &entry, MapFlags::ANY).expect("written");
    }

    /// An honest guest loses nothing while another CPU holds its flow, and one that sends beyond what it
    /// was shown gains nothing. The flow stays as it is, for it is not this CPU's.
    #[test]
    fn a_flow_that_another_cpu_holds() {
        if !can_attach() {
            return;
        }
        const WINDOW: u16 = 1000;
        let guest = ([10, 0, 0, 1], 1).into();
        let peer = ([10, 0, 0, 2], 2).into();
        let from_guest = Packet { seq: 1, ack: 1, ..Packet::new(guest, peer) };
        let to_guest = Packet { seq: 1, ack: 1, window: WINDOW, ..Packet::new(peer, guest) };
        let data = |bytes: usize| Packet { payload: vec![0; bytes], ..from_guest.clone() };
        for police in [false, true] {
            let params = Params::with(|p| p.police = police.into());
            let datapath = Datapath::load_without_timer(&AttachOptions::from_params(params))
                .expect("it loads");
            let run = |program, packet: &Packet| {
                datapath.run(program, &packet.frame(), 0).expect("it runs")
            };
            run(Program::FromGuest, &Packet::syn(guest, peer));
            let answer = Packet { flags: SYN | ACK, ack: 1, ..Packet::new(peer, guest) };
            run(Program::ToGuest, &Packet { window: WINDOW, ..answer });
            run(Program::FromGuest, &from_guest);
            let shown = run(Program::ToGuest, &to_guest).frame;
            let key = datapath.maps().flows.keys().next().expect("a flow");
            set_lock(&datapath, &key, HELD);
            let held = datapath.maps().flows.lookup(&key, MapFlags::ANY).expect("read");
            let verdict = |packet: &Packet| run(Program::FromGuest, packet).return_value;
            let beyond = if police { DROP } else { NEXT };
            assert_eq!(verdict(&data(WINDOW.into())), NEXT, "all that the window admits");
            assert_eq!(verdict(&data(usize::from(WINDOW) + 1)), beyond, "a byte beyond");
            assert_eq!(
                verdict(&Packet { ack: 2, ..from_guest.clone() }),
                beyond,
                "of nothing sent"
            );
            assert_eq!(verdict(&Packet { flags: RST, ..from_guest.clone() }), beyond, "a reset");
            let output = run(Program::ToGuest, &to_guest);
            assert_eq!((output.return_value, output.frame), (NEXT, shown), "the same window");
            let counted = datapath.counters().expect("counters");
            assert_eq!(counted.get(counters::CONTENDED), 5);
            assert_eq!(counted.get(counters::POLICED), if police { 3 } else { 0 });
            assert_eq!(counted.get(counters::UNJUDGED), 0);
            let after = datapath.maps().flows.lookup(&key, MapFlags::ANY).expect("read");
            assert_eq!(after, held, "the flow is another CPU's");
        }
    }

    /// Its SYN would open a connection without a flow, which passes untranslated for good.
    #[test]
    fn a_connection_that_begins_while_the_flow_before_is_being_deleted() {
        if !can_attach() {
            return;
        }
        let syn = Packet::syn(([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()).frame();
        for (police, verdict, counter) in
            [(false, -1, counters::CONTENDED), (true, 2, counters::UNJUDGED)]
        {
            let params = Params::with(|p| p.police = police.into());
            let datapath = Datapath::load(&AttachOptions::from_params(params)).expect("it loads");
            datapath.run(Program::FromGuest, &syn, 0).expect("it runs");
            let key = datapath.maps().flows.keys().next().expect("a flow");
            set_lock(&datapath, &key, GONE);
            let output = datapath.run(Program::FromGuest, &syn, 0).expect("it runs");
            assert_eq!((output.return_value, &output.frame), (verdict, &syn));
            assert_eq!(datapath.counters().expect("counters").get(counter), 1);
        }
    }

    /// A half-open flow that a CPU holds is spared when the oldest gives way, and is the oldest still when
    /// the next one has to.
    #[test]
    fn a_flow_that_is_spared_gives_way_later() {
        if !can_attach() {
            return;
        }
        const HALF_OPEN_MAX: u16 = 4;
        let options =
            AttachOptions { max_flows: 4 * u32::from(HALF_OPEN_MAX), ..AttachOptions::default() };
        let datapath = Datapath::load(&options).expect("it loads");
        let flows = &datapath.maps().flows;
        let open = |port: u16| {
            let before: Vec<_> = flows.keys().collect();
            let syn = Packet::syn(([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 2).into());
            datapath.run(Program::FromGuest, &syn.frame(), 0).expect("it runs");
            flows.keys().find(|key| !before.contains(key)).expect("its flow")
        };
        let opened: Vec<_> = (1..=HALF_OPEN_MAX).map(open).collect();
        let is_there = |number: usize| flows.keys().any(|key| key == opened[number]);
        set_lock(&datapath, &opened[0], HELD);
        open(100);
        assert!(is_there(0) && !is_there(1), "the second gives way instead of the first");
        set_lock(&datapath, &opened[0], FREE);
        open(101);
        assert!(!is_there(0) && is_there(2), "the first gives way, not the third");
        assert_eq!(datapath.counters().expect("counters").get(counters::GAVE_WAY), 2);
    }

    /// The tests load some hundred times. Where the verifier follows many constants separately, what
    /// comes after is verified once for each.
    #[test]
    fn the_verifier_does_not_take_long() {
        if !can_attach() {
            return;
        }
        const MAX_INSNS: u32 = 350_000;
        let datapath = Datapath::load(&AttachOptions::default()).expect("it loads");
        for (program, insns) in datapath.verified().expect("known") {
            assert!((1..MAX_INSNS).contains(&insns), "{program}: {insns}");
        }
    }
}
