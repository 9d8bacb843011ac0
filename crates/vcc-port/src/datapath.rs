//! The compiled datapath, loaded: programs and maps that belong to no device yet.

use libbpf_rs::{MapCore, MapHandle, Object, ObjectBuilder, OpenObject, ProgramInput, ProgramMut};

use crate::flows::Flow;
use crate::tcx::Hook;
use crate::{AttachOptions, Counters, Error, Result, counters, flows, kernel, libbpf, params};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc.bpf.o"));

/// Of struct __sk_buff (linux/bpf.h), which is BPF_PROG_RUN's context: size, and where in it the
/// segment size of a super-segment stands.
const SK_BUFF_BYTES: usize = 192;
const SK_BUFF_GSO_SIZE: usize = 176;

/// The maps of one port.
pub(crate) struct Maps {
    pub flows: MapHandle,
    pub params: MapHandle,
    pub counters: MapHandle,
}

/// A program of the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    FromGuest,
    ToGuest,
    /// Parses and does no more: what the other two are measured against.
    ParseOnly,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::FromGuest => Hook::FromGuest.program_name(),
            Self::ToGuest => Hook::ToGuest.program_name(),
            Self::ParseOnly => "parse_only",
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
    pub fn load(options: &AttachOptions) -> Result<Self> {
        let mut open = open(OBJECT)?;
        let mut flows = open.maps_mut().find(|map| map.name() == "flows");
        if let Some(flows) = &mut flows {
            flows
                .set_max_entries(options.max_flows)
                .map_err(|e| Error::system("limit the number of flows", e))?;
        }
        let object = load(open)?;
        let maps = Maps {
            flows: map(&object, "flows")?,
            params: map(&object, "params")?,
            counters: map(&object, "counters")?,
        };
        params::write(&maps.params, &options.params())?;
        Ok(Self { object, maps })
    }

    /// Runs a program on one Ethernet frame, without a device. A `gso_size` other than 0 makes
    /// the frame a super-segment.
    pub fn run(&self, program: Program, frame: &[u8], gso_size: u32) -> Result<RunOutput> {
        const ROOM_TO_GROW: usize = 256;
        let doing = || format!("run {} on a frame of {} bytes", program.name(), frame.len());
        let mut context = [0; SK_BUFF_BYTES];
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

    pub fn flows(&self) -> Result<Vec<Flow>> {
        flows::read(&self.maps.flows)
    }

    pub fn counters(&self) -> Result<Counters> {
        counters::read(&self.maps.counters)
    }

    pub(crate) fn program(&self, program: Program) -> Result<ProgramMut<'_>> {
        let name = program.name();
        self.object.progs_mut().find(|p| p.name() == name).ok_or_else(|| lacks(name))
    }
}

/// Opens a BPF object that the crate embeds.
pub(crate) fn open(object: &[u8]) -> Result<OpenObject> {
    let (result, said) = libbpf::listen(|| ObjectBuilder::default().open_memory(object));
    result.map_err(|e| Error::System {
        doing: "open the datapath".into(),
        why: format!("{e:#} ({})", said.lines().last().unwrap_or_default()),
    })
}

pub(crate) fn load(open: OpenObject) -> Result<Object> {
    let (result, said) = libbpf::listen(|| open.load());
    result.map_err(|e| match libbpf::verifier_last_lines(&said) {
        Some(last_lines) => Error::Verifier { release: kernel::release(), last_lines },
        None => Error::system("load the datapath", e),
    })
}

pub(crate) fn map(object: &Object, name: &str) -> Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name).ok_or_else(|| lacks(name))?;
    MapHandle::try_from(&map).map_err(|e| Error::system(format!("keep the map `{name}`"), e))
}

pub(crate) fn lacks(name: &str) -> Error {
    Error::System { doing: "use the datapath".into(), why: format!("it has no `{name}`") }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ProgramType;

    use super::*;
    use crate::testing::can_attach;

    #[test]
    fn the_verifiers_refusal_is_one_line_with_its_last_words() {
        if !can_attach() {
            return;
        }
        let mut open = open(OBJECT).expect("an object");
        for mut program in open.progs_mut() {
            // Socket filters may not read packets directly.
            program.set_prog_type(ProgramType::SocketFilter);
        }
        let Err(error) = load(open) else { panic!("a socket filter that reads packets") };
        let said = error.to_string();
        assert!(said.contains("verifier of Linux"), "{said}");
        assert!(said.contains("invalid bpf_context access"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}
