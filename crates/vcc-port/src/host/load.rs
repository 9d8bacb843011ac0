//! Loading the programs of a host and of its ports.

use libbpf_rs::{Object, OpenObject};
use vcc_engine::sys;

use crate::layout::Layout;
use crate::maps::{self, Maps};
use crate::plain::to_bytes;
use crate::policy::{self, SharedPolicy};
use crate::underlays::Linked;
use crate::{Error, Program, Result, Underlays, flows, object, timers};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc.bpf.o"));
static PORT_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/port.bpf.o"));
static LANES_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lanes.bpf.o"));
const WHAT: &str = "the datapath";
const TIMERS_SECTION: &str = ".rodata.timers";
const LANES_SECTION: &str = ".rodata.lanes";
const SLOTS_SECTION: &str = ".rodata.slots";
const PORT_CONSTANTS_SECTION: &str = ".rodata.port";

/// MAC addresses of all guests together: a thousand guests cannot take all of them.
const NEIGHBOURS_MAX: u32 = 1 << 18;

/// Of so many flows that were open one may leave a minisock, but never fewer than the least; each
/// takes 136 bytes, with those of connections that never were.
const MINISOCK_SHARE: u32 = 16;
const MINISOCKS_LEAST: u32 = 1024;

/// Room for flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// All ports' together, but for those that are reserved.
    pub flows_max: u32,
    /// Each port has room for as many flows, however many the others have.
    pub flows_reserved: u32,
}

impl Room {
    /// A million connections, and some for each port. Together a power of two, as the kernel's table
    /// has it: 16 MiB without any, and 32 MiB for the queues.
    pub(crate) const OF_HOST: Self = {
        let flows_reserved = 11;
        Self { flows_max: (1 << 20) - flows_reserved * sys::PORTS_MAX, flows_reserved }
    };

    /// For one port.
    pub(crate) fn for_one(flows_max: u32) -> Self {
        Self { flows_max, flows_reserved: 0 }
    }

    /// The capacity of the table.
    fn entries(self) -> u32 {
        self.flows_max + self.flows_reserved * sys::PORTS_MAX
    }
}

/// Where everything is in this version's maps.
pub(crate) fn layout() -> Result<Layout> {
    Layout::ours(OBJECT)
}

/// Programs with maps of their own.
pub(super) fn fresh(
    policy: Option<&SharedPolicy>,
    room: Room,
    yardsticks: bool,
    underlays: &Underlays,
) -> Result<Object> {
    let mut open = open(policy, yardsticks, underlays)?;
    // Each flow is in a slot of its wheel, and may be half-open.
    let entries = room.entries();
    let minisocks = (entries / MINISOCK_SHARE).max(MINISOCKS_LEAST);
    let minisock_sets = (minisocks / sys::MINISOCK_OPEN_WAYS).next_power_of_two();
    for (name, room) in [
        ("flows", entries),
        ("queued", 2 * entries),
        ("minisocks", minisock_sets),
        ("neighbours", entries.min(NEIGHBOURS_MAX)),
    ] {
        object::map(&mut open, name)?
            .set_max_entries(room)
            .map_err(|e| Error::system("limit the number of flows", e))?;
    }
    let constants = sys::vcc_host_constants {
        layout: sys::LAYOUT_VERSION,
        flows_max: room.flows_max,
        flows_reserved: room.flows_reserved,
        minisock_sets,
        tag_secrets: flows::secrets()?,
    };
    object::set_constants(&mut open, maps::CONSTANTS_SECTION, to_bytes(&constants))?;
    object::load(open, WHAT)
}

/// The programs of this version of vcc, with the maps of a host that has ports already.
pub(super) fn over(
    maps: &Maps,
    policy: Option<&SharedPolicy>,
    underlays: &Underlays,
) -> Result<Object> {
    const DOING: &str = "replace the programs of this host";
    let constants = maps.constants().ok_or_else(|| Error::layout(DOING))?;
    let mut open = open(policy, false, underlays)?;
    object::set_constants(&mut open, maps::CONSTANTS_SECTION, to_bytes(&constants))?;
    object::lend(&mut open, maps.all().filter(|(name, _)| *name != maps::CONSTANTS), DOING)?;
    object::load(open, WHAT)
}

/// The programs to attach to a port.
pub(super) fn of_port(maps: &Maps, index: u32) -> Result<Object> {
    let mut open = object::open(if maps::has_lanes() { LANES_OBJECT } else { PORT_OBJECT }, WHAT)?;
    object::set_constants(&mut open, PORT_CONSTANTS_SECTION, to_bytes(&index))?;
    maps.lend_calls(&mut open)?;
    object::load(open, WHAT)
}

/// The programs that ports need: verifying the yardsticks would take a sixth of the time.
fn open(
    policy: Option<&SharedPolicy>,
    yardsticks: bool,
    underlays: &Underlays,
) -> Result<OpenObject> {
    let linked = Linked::link(OBJECT, underlays)?;
    let mut open = object::open(linked.object.as_deref().unwrap_or(OBJECT), WHAT)?;
    object::set_constants(&mut open, SLOTS_SECTION, to_bytes(&linked.slots))?;
    let has_timers = timers::are_there();
    object::set_constants(&mut open, TIMERS_SECTION, to_bytes(&u32::from(has_timers)))?;
    if maps::has_lanes() {
        object::set_constants(&mut open, LANES_SECTION, to_bytes(&1u32))?;
        for name in ["works", "outers"] {
            // One more for what is in none (lane_find()).
            object::map(&mut open, name)?
                .set_max_entries(sys::LANES + 1)
                .map_err(|e| Error::system("give each run a lane", e))?;
        }
    }
    match policy {
        Some(policy) => policy.maps().lend_to(&mut open)?,
        None => policy::shrink(&mut open)?,
    }
    let wanted = [
        (Program::ParseFromGuest, yardsticks),
        (Program::ParseToGuest, yardsticks),
        (Program::Turn, !has_timers),
    ];
    for (some, is_wanted) in wanted {
        if let Some(mut program) = open.progs_mut().find(|it| it.name() == some.name()) {
            program.set_autoload(is_wanted);
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use vcc_testing::can_attach;

    use super::*;
    use crate::kernel;

    #[test]
    fn the_verifiers_refusal_is_one_sentence_and_its_whole_log_a_file() {
        if !can_attach() {
            return;
        }
        let load = || fresh(None, Room::for_one(1), false, &Underlays::default());
        let Err(error) = object::spoilt::during("all_to_guest", load) else {
            panic!("a socket filter that reads packets")
        };
        let message = error.to_string();
        let release = kernel::release();
        let start = format!(
            "the verifier of Linux {release} refused the program all_to_guest of the datapath: "
        );
        assert!(message.starts_with(&start), "{message}");
        assert!(!message.contains('\n'), "{message}");
        let (last_line, rest) = message[start.len()..].split_once("; ").expect("what was said");
        assert!(last_line.contains("invalid bpf_context access"), "{message}");
        assert!(message.ends_with(&kernel::experience()), "{message}");
        let path = rest.strip_prefix("the whole log is in ").expect("where it is");
        let path = path.split(';').next().expect("a path");
        let log = fs::read_to_string(path).expect("the log");
        assert!(log.lines().count() > 3 && log.contains(last_line), "{log}");
        assert!(log.starts_with("vcc ") && log.contains("the program all_to_guest\n"), "{log}");
    }
}
