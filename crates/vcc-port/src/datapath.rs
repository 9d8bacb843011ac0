//! The compiled datapath in the kernel: programs and maps that are attached to no device yet.

use std::os::fd::AsFd;

use libbpf_rs::{Object, OpenObject, ProgramMut};
use vcc_engine::{Delays, half_open_max, sys};

use crate::flows::Flow;
use crate::maps::{self, Maps};
use crate::plain::to_bytes;
use crate::policy::{self, SharedPolicy};
use crate::sweep::{self, Sweep};
use crate::test_run::{self, Context, RunOutput};
use crate::{
    AttachOptions, Counters, Error, Program, Result, Usage, counters, delays, flows, object,
    params, usage,
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc.bpf.o"));
const WHAT: &str = "the datapath";

/// Programs and maps of one port.
pub struct Datapath {
    object: Object,
    pub(crate) maps: Maps,
}

impl Datapath {
    /// All connections have the treatment of `options`.
    pub fn load(options: &AttachOptions) -> Result<Self> {
        Self::load_without_timer(options)?.with_timer()
    }

    /// Like [`Self::load`], but no timer ever changes a flow: for tests that compare states byte
    /// for byte.
    #[doc(hidden)]
    pub fn load_without_timer(options: &AttachOptions) -> Result<Self> {
        Self::load_opened(open(None)?, options, None)
    }

    /// Like [`Self::load`], or like [`Self::load_under`] with a policy, with the yardsticks of
    /// benchmarks too, which no port needs.
    #[doc(hidden)]
    pub fn load_with_yardsticks(
        policy: Option<(&SharedPolicy, u32)>,
        options: &AttachOptions,
    ) -> Result<Self> {
        let (shared, index) = policy.unzip();
        Self::load_opened(open_all(shared)?, options, index)?.with_timer()
    }

    /// Each connection has the treatment of its rule. `index` is the port's among those of the
    /// policy.
    pub fn load_under(policy: &SharedPolicy, index: u32, options: &AttachOptions) -> Result<Self> {
        Self::load_opened(open(Some(policy))?, options, Some(index))?.with_timer()
    }

    /// The programs of this version of vcc, with the maps of a port that is attached already.
    pub(crate) fn load_over(maps: &Maps, policy: Option<&SharedPolicy>) -> Result<Self> {
        let constants = maps.constants().ok_or_else(|| Error::layout("take a port over"))?;
        let mut open = open(policy)?;
        set_constants(&mut open, &constants)?;
        for (name, map) in maps.all().filter(|(name, _)| *name != maps::CONSTANTS) {
            object::map(&mut open, name)?
                .reuse_fd(map.as_fd())
                .map_err(|e| Error::system("take a port over", e))?;
        }
        let object = object::load(open, WHAT)?;
        Ok(Self { maps: Maps::of(&object)?, object })
    }

    fn load_opened(
        mut open: OpenObject,
        options: &AttachOptions,
        index: Option<u32>,
    ) -> Result<Self> {
        // The queues have room for as many flows as can be in them: see datapath/table.h.
        for (name, room) in [
            ("flows", options.max_flows),
            ("due", options.max_flows),
            ("half_open", half_open_max(options.max_flows)),
        ] {
            object::map(&mut open, name)?
                .set_max_entries(room)
                .map_err(|e| Error::system("limit the number of flows", e))?;
        }
        let constants = sys::vcc_port_constants {
            layout: sys::LAYOUT_VERSION,
            by_policy: index.is_some().into(),
            index: index.unwrap_or(0),
            flows_max: options.max_flows,
        };
        set_constants(&mut open, &constants)?;
        let object = object::load(open, WHAT)?;
        let maps = Maps::of(&object)?;
        params::write(&maps.params, &options.params)?;
        Ok(Self { object, maps })
    }

    fn with_timer(self) -> Result<Self> {
        sweep::start_timer(&sweep::keep(&self.program(Program::Sweep)?)?)?;
        Ok(self)
    }

    /// Runs a program on one Ethernet frame, without a device. A `gso_size` other than 0 makes
    /// the frame a super-segment.
    pub fn run(&self, program: Program, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        self.run_in(program, frame, Context { gso_size, mark: 0 })
    }

    /// Runs the second pass of a clone of a segment from the guest, which makes it a FACK.
    pub fn run_clone(&self, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        self.run_in(Program::FromGuest, frame, Context { gso_size, mark: sys::FACK_MARK })
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
        self.sweep(Sweep::Judge)
    }

    /// Like [`Self::judge_flows`], but for flows in their handshake too.
    pub fn settle_flows(&self) -> Result<u32> {
        self.sweep(Sweep::Settle)
    }

    /// Forgets every flow, and returns what it holds of a pool.
    pub fn forget_flows(&self) -> Result<u32> {
        self.sweep(Sweep::Forget)
    }

    /// The number of flows, without reading them.
    pub fn usage(&self) -> Result<Usage> {
        usage::read(&self.maps.usage)
    }

    fn sweep(&self, what: Sweep) -> Result<u32> {
        sweep::run(&sweep::keep(&self.program(Program::Sweep)?)?, what)
    }

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps.flows)
    }

    pub fn counters(&self) -> Result<Counters> {
        counters::read(&self.maps.counters)
    }

    pub fn delays(&self) -> Result<Delays> {
        delays::read(&self.maps.delays)
    }

    pub(crate) fn program(&self, program: Program) -> Result<ProgramMut<'_>> {
        let name = program.name();
        self.object.progs_mut().find(|p| p.name() == name).ok_or_else(|| object::lacks(name))
    }
}

/// What a port needs: verifying the yardsticks would take a sixth of the time.
fn open(policy: Option<&SharedPolicy>) -> Result<OpenObject> {
    let mut open = open_all(policy)?;
    for yardstick in [Program::ParseFromGuest, Program::ParseToGuest] {
        if let Some(mut program) = open.progs_mut().find(|it| it.name() == yardstick.name()) {
            program.set_autoload(false);
        }
    }
    Ok(open)
}

/// With the maps of `policy`, or with the smallest ones if there is none.
fn open_all(policy: Option<&SharedPolicy>) -> Result<OpenObject> {
    let mut open = object::open(OBJECT, WHAT)?;
    match policy {
        Some(policy) => policy.maps().lend_to(&mut open)?,
        None => policy::shrink(&mut open)?,
    }
    Ok(open)
}

fn set_constants(open: &mut OpenObject, constants: &sys::vcc_port_constants) -> Result<()> {
    object::map(open, maps::CONSTANTS_SECTION)?
        .set_initial_value(to_bytes(constants))
        .map_err(|e| Error::system("set the constants of a port", e))
}

#[cfg(test)]
mod tests {
    use libbpf_rs::{MapCore, MapFlags, ProgramType};
    use vcc_engine::Params;
    use vcc_frames::Packet;
    use vcc_testing::can_attach;

    use super::*;
    use crate::tcx;

    /// A segment that cannot be translated must not pass a policed flow: its window would have the
    /// wrong scale, or its data would not be counted.
    #[test]
    fn a_flow_that_another_cpu_holds() {
        if !can_attach() {
            return;
        }
        const HELD: u32 = 1;
        let guest = ([10, 0, 0, 1], 1).into();
        let peer = ([10, 0, 0, 2], 2).into();
        for (police, verdict, counter) in
            [(false, -1, counters::CONTENDED), (true, 2, counters::UNJUDGED)]
        {
            let params = Params::with(|p| p.police = police.into());
            let options = AttachOptions { params, ..AttachOptions::default() };
            let datapath = Datapath::load(&options).expect("it loads");
            let syn = Packet::syn(guest, peer).frame();
            datapath.run(Program::FromGuest, &syn, 0).expect("it runs");
            let flows = &datapath.maps.flows;
            let key = flows.keys().next().expect("a flow");
            let mut entry = flows.lookup(&key, MapFlags::ANY).expect("read").expect("there");
            entry[..4].copy_from_slice(&HELD.to_ne_bytes());
            flows.update(&key, &entry, MapFlags::ANY).expect("written");
            for (program, ack) in [
                (Program::FromGuest, Packet::new(guest, peer)),
                (Program::ToGuest, Packet::new(peer, guest)),
            ] {
                let frame = Packet { ack: 1, ..ack }.frame();
                let output = datapath.run(program, &frame, 0).expect("it runs");
                assert_eq!((output.return_value, output.frame), (verdict, frame));
            }
            assert_eq!(datapath.counters().expect("counters").get(counter), 2);
        }
    }

    /// Loading is nearly all that attaching takes, and the tests attach some hundred times. Where the
    /// verifier follows many constants separately, what comes after is verified once for each.
    #[test]
    fn the_verifier_does_not_take_long() {
        if !can_attach() {
            return;
        }
        const MAX_INSNS: u32 = 250_000;
        let datapath = Datapath::load(&AttachOptions::default()).expect("it loads");
        for program in [Program::FromGuest, Program::ToGuest, Program::Sweep] {
            let loaded = datapath.program(program).expect("a program");
            let insns = tcx::program_info(loaded.as_fd()).expect("its info").verified_insns;
            assert!((1..MAX_INSNS).contains(&insns), "{}: {insns}", program.name());
        }
    }

    #[test]
    fn the_verifiers_refusal_is_one_line_with_its_last_words() {
        if !can_attach() {
            return;
        }
        let mut open = object::open(OBJECT, WHAT).expect("an object");
        for mut program in open.progs_mut() {
            // Socket filters may not read packets directly.
            program.set_prog_type(ProgramType::SocketFilter);
        }
        let Err(error) = object::load(open, WHAT) else {
            panic!("a socket filter that reads packets")
        };
        let said = error.to_string();
        assert!(said.contains("verifier of Linux"), "{said}");
        assert!(said.contains("invalid bpf_context access"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}
