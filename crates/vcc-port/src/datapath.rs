//! The compiled datapath, loaded: programs and maps that belong to no device yet.

use std::os::fd::AsFd;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, OpenObject, ProgramInput, ProgramMut};
use vcc_engine::{half_open_max, sys};

use crate::flows::Flow;
use crate::plain::{from_bytes, to_bytes};
use crate::policy::{self, SharedPolicy};
use crate::sweep::{self, Sweep};
use crate::tcx::Hook;
use crate::{
    AttachOptions, Counters, Error, Result, Usage, counters, flows, object, params, usage,
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc.bpf.o"));
const WHAT: &str = "the datapath";

/// Of struct __sk_buff (linux/bpf.h), which is BPF_PROG_RUN's context: size, and where in it the
/// mark and the segment size of a super-segment stand.
pub(crate) const SK_BUFF_BYTES: usize = 192;
pub(crate) const SK_BUFF_MARK: usize = 8;
const SK_BUFF_GSO_SIZE: usize = 176;

/// The maps of one port.
pub(crate) struct Maps {
    pub flows: MapHandle,
    pub usage: MapHandle,
    pub due: MapHandle,
    pub half_open: MapHandle,
    pub queue_ends: MapHandle,
    pub wheel: MapHandle,
    pub params: MapHandle,
    pub counters: MapHandle,
    pub events: MapHandle,
    pub traces: MapHandle,
    pub traced: MapHandle,
    pub neighbours: MapHandle,
    pub constants: MapHandle,
}

impl Maps {
    /// All of them, each as `open` finds it by its name.
    pub(crate) fn open(open: impl Fn(&str) -> Result<MapHandle>) -> Result<Self> {
        Ok(Self {
            flows: open("flows")?,
            usage: open("usage")?,
            due: open("due")?,
            half_open: open("half_open")?,
            queue_ends: open("queue_ends")?,
            wheel: open("wheel")?,
            params: open("params")?,
            counters: open("counters")?,
            events: open("events")?,
            traces: open("traces")?,
            traced: open("traced")?,
            neighbours: open("neighbours")?,
            constants: open("constants")?,
        })
    }

    pub(crate) fn with_names(&mut self) -> [(&'static str, &mut MapHandle); 13] {
        [
            ("flows", &mut self.flows),
            ("usage", &mut self.usage),
            ("due", &mut self.due),
            ("half_open", &mut self.half_open),
            ("queue_ends", &mut self.queue_ends),
            ("wheel", &mut self.wheel),
            ("params", &mut self.params),
            ("counters", &mut self.counters),
            ("events", &mut self.events),
            ("traces", &mut self.traces),
            ("traced", &mut self.traced),
            ("neighbours", &mut self.neighbours),
            ("constants", &mut self.constants),
        ]
    }

    /// Whether this version of vcc understands what they hold.
    pub(crate) fn are_understood(&self) -> bool {
        let sizes = |map: &MapHandle| (map.key_size() as usize, map.value_size() as usize);
        sizes(&self.flows) == (size_of::<sys::vcc_key>(), size_of::<sys::vcc_entry>())
            && sizes(&self.params).1 == size_of::<sys::vcc_params>()
            && self.counters.max_entries() == sys::COUNT_MAX
            && sizes(&self.traced).1 == size_of::<sys::vcc_key>()
            && sizes(&self.neighbours)
                == (size_of::<sys::vcc_neighbour_key>(), size_of::<sys::vcc_neighbour>())
            && self.constants().is_some_and(|constants| constants.layout == sys::LAYOUT_VERSION)
    }

    /// What the port was told for good; None where that is not what this version tells.
    pub(crate) fn constants(&self) -> Option<sys::vcc_port_constants> {
        from_bytes(&self.constants.lookup(&[0; 4], MapFlags::ANY).ok()??)
    }
}

/// A program of the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    FromGuest,
    ToGuest,
    /// These parse and do no more: what the other two are measured against.
    ParseFromGuest,
    ParseToGuest,
    /// Looks at all flows at once, or starts the port's timer; looks at no frame.
    Sweep,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::FromGuest => Hook::FromGuest.program_name(),
            Self::ToGuest => Hook::ToGuest.program_name(),
            Self::ParseFromGuest => "parse_from_guest",
            Self::ParseToGuest => "parse_to_guest",
            Self::Sweep => "sweep",
        }
    }
}

impl From<Hook> for Program {
    fn from(hook: Hook) -> Self {
        match hook {
            Hook::FromGuest => Self::FromGuest,
            Hook::ToGuest => Self::ToGuest,
        }
    }
}

/// What a program returned for a frame and made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutput {
    pub return_value: i32,
    pub frame: Vec<u8>,
}

/// Programs and maps of one port, in the kernel.
pub struct Datapath {
    object: Object,
    pub(crate) maps: Maps,
}

impl Datapath {
    /// All connections of the port are treated alike.
    pub fn load(options: &AttachOptions) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        policy::shrink(&mut open)?;
        Self::load_with(open, options, &constants(None, options))
    }

    /// The same, but that no flow is ever looked at: for tests that compare states byte for byte.
    #[doc(hidden)]
    pub fn load_without_timer(options: &AttachOptions) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        policy::shrink(&mut open)?;
        Self::load_maps(open, options, &constants(None, options))
    }

    /// Each connection is treated by its rule. `index` is the port's among those of the policy.
    pub fn load_under(policy: &SharedPolicy, index: u32, options: &AttachOptions) -> Result<Self> {
        let mut open = object::open(OBJECT, WHAT)?;
        policy.maps().lend_to(&mut open)?;
        Self::load_with(open, options, &constants(Some(index), options))
    }

    fn load_with(
        open: OpenObject,
        options: &AttachOptions,
        constants: &sys::vcc_port_constants,
    ) -> Result<Self> {
        let datapath = Self::load_maps(open, options, constants)?;
        sweep::start_timer(&sweep::keep(&datapath.program(Program::Sweep)?)?)?;
        Ok(datapath)
    }

    fn load_maps(
        mut open: OpenObject,
        options: &AttachOptions,
        constants: &sys::vcc_port_constants,
    ) -> Result<Self> {
        // As many in the queues as can stand there: see datapath/table.h.
        for (name, room) in [
            ("flows", options.max_flows),
            ("due", options.max_flows),
            ("half_open", half_open_max(options.max_flows)),
        ] {
            object::map(&mut open, name)?
                .set_max_entries(room)
                .map_err(|e| Error::system("limit the number of flows", e))?;
        }
        set_constants(&mut open, constants)?;
        let object = object::load(open, WHAT)?;
        let maps = Maps::open(|name| map(&object, name))?;
        params::write(&maps.params, &options.treatment.params())?;
        Ok(Self { object, maps })
    }

    /// The same programs of this version of vcc, over the maps of a port that another loaded.
    pub(crate) fn load_over(maps: &mut Maps, policy: Option<&SharedPolicy>) -> Result<Self> {
        let failed = |e| Error::system("take a port over", e);
        let mut open = object::open(OBJECT, WHAT)?;
        match policy {
            Some(policy) => policy.maps().lend_to(&mut open)?,
            None => policy::shrink(&mut open)?,
        }
        let told = maps.constants().ok_or_else(|| Error::layout("take a port over"))?;
        set_constants(&mut open, &told)?;
        for (name, map) in maps.with_names() {
            if name == CONSTANTS {
                continue;
            }
            object::map(&mut open, name)?.reuse_fd(map.as_fd()).map_err(failed)?;
        }
        let object = object::load(open, WHAT)?;
        let maps = Maps::open(|name| self::map(&object, name))?;
        Ok(Self { object, maps })
    }

    /// Runs a program on one Ethernet frame, without a device. A `gso_size` other than 0 makes
    /// the frame a super-segment.
    pub fn run(&self, program: Program, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        self.run_marked(program, frame, gso_size, 0)
    }

    /// Runs a clone of a segment from the guest through its second pass, in which it becomes a
    /// FACK.
    pub fn run_clone(&self, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        self.run_marked(Program::FromGuest, frame, gso_size, sys::FACK_MARK)
    }

    fn run_marked(
        &self,
        program: Program,
        frame: &[u8],
        gso_size: u32,
        mark: u32,
    ) -> Result<RunOutput> {
        const ROOM_TO_GROW: usize = 256;
        let doing = || format!("run {} on a frame of {} bytes", program.name(), frame.len());
        let mut context = [0; SK_BUFF_BYTES];
        context[SK_BUFF_MARK..][..4].copy_from_slice(&mark.to_ne_bytes());
        context[SK_BUFF_GSO_SIZE..][..4].copy_from_slice(&gso_size.to_ne_bytes());
        let mut out = vec![0; frame.len() + ROOM_TO_GROW];
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..ProgramInput::default()
        };
        let output =
            self.program(program)?.test_run(input).map_err(|e| Error::system(doing(), e))?;
        let return_value = output.return_value as i32;
        let frame = output.data.map(|data| data.to_vec()).unwrap_or_default();
        Ok(RunOutput { return_value, frame })
    }

    /// Every flow comes under the edition of the policy that holds. Returns how many there are.
    pub fn judge_flows(&self) -> Result<u32> {
        self.sweep(Sweep::Judge)
    }

    /// The same for those too whose handshake goes on.
    pub fn settle_flows(&self) -> Result<u32> {
        self.sweep(Sweep::Settle)
    }

    /// Forgets every flow, with what it holds of a pool.
    pub fn forget_flows(&self) -> Result<u32> {
        self.sweep(Sweep::Forget)
    }

    /// How many flows there are, without reading them.
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

    pub(crate) fn program(&self, program: Program) -> Result<ProgramMut<'_>> {
        let name = program.name();
        self.object.progs_mut().find(|p| p.name() == name).ok_or_else(|| object::lacks(name))
    }
}

/// What a map is called among ours that libbpf makes of a section.
const CONSTANTS: &str = "constants";
const CONSTANTS_SECTION: &str = ".rodata.port";

fn constants(index: Option<u32>, options: &AttachOptions) -> sys::vcc_port_constants {
    sys::vcc_port_constants {
        layout: sys::LAYOUT_VERSION,
        by_policy: index.is_some().into(),
        index: index.unwrap_or(0),
        flows_max: options.max_flows,
    }
}

fn set_constants(open: &mut OpenObject, constants: &sys::vcc_port_constants) -> Result<()> {
    object::map(open, CONSTANTS_SECTION)?
        .set_initial_value(to_bytes(constants))
        .map_err(|e| Error::system("tell the datapath of its port", e))
}

pub(crate) fn map(object: &Object, name: &str) -> Result<MapHandle> {
    let name = if name == CONSTANTS { CONSTANTS_SECTION } else { name };
    let map = object.maps().find(|map| map.name() == name).ok_or_else(|| object::lacks(name))?;
    MapHandle::try_from(&map).map_err(|e| Error::system(format!("keep the map `{name}`"), e))
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ProgramType;
    use vcc_engine::Treatment;

    use super::*;
    use crate::testing::can_attach;

    /// TCP over IPv4 between 10.0.0.1:1 and 10.0.0.2:2.
    fn segment(from_guest: bool, flags: u8) -> Vec<u8> {
        let ends = if from_guest { [1, 2] } else { [2, 1] };
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend(ends.iter().flat_map(|end| [10, 0, 0, *end]));
        frame.extend(ends.iter().flat_map(|end| [0, *end]));
        frame.extend([0, 0, 0, 0, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        frame
    }

    /// A window at the wrong scale, or data that nobody has counted: neither passes a policed flow.
    #[test]
    fn a_flow_that_another_cpu_holds() {
        if !can_attach() {
            return;
        }
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        const HELD: u32 = 1;
        for (police, verdict, counter) in
            [(false, -1, counters::CONTENDED), (true, 2, counters::UNJUDGED)]
        {
            let treatment = Treatment { police, ..Treatment::default() };
            let options = AttachOptions { treatment, ..AttachOptions::default() };
            let datapath = Datapath::load(&options).expect("it loads");
            datapath.run(Program::FromGuest, &segment(true, SYN), 0).expect("it runs");
            let flows = &datapath.maps.flows;
            let key = flows.keys().next().expect("a flow");
            let mut entry = flows.lookup(&key, MapFlags::ANY).expect("read").expect("there");
            entry[..4].copy_from_slice(&HELD.to_ne_bytes());
            flows.update(&key, &entry, MapFlags::ANY).expect("written");
            for (program, from_guest) in [(Program::FromGuest, true), (Program::ToGuest, false)] {
                let frame = segment(from_guest, ACK);
                let output = datapath.run(program, &frame, 0).expect("it runs");
                assert_eq!((output.return_value, output.frame), (verdict, frame));
            }
            assert_eq!(datapath.counters().expect("counters").get(counter), 2);
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
