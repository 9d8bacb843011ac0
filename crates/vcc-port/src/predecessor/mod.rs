//! The pins of another version of vcc on this host, with another layout of its maps: its ports and
//! their connections, read by names.

mod hand_over;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Program as BpfProgram};
use vcc_engine::{Field, FlowState, Underlay, sys};

use crate::batch::Batches;
use crate::host::{self, Found};
use crate::layout::Layout;
use crate::pins::Pin;
use crate::plain::{from_bytes, to_bytes};
use crate::policy::SharedPolicy;
use crate::{AttachOptions, Error, Flow, FlowId, Host, Result, bpffs, monotonic, pins};
#[cfg(test)]
pub(crate) use hand_over::Step;

/// Flows per system call.
const ROOM: usize = 1024;

/// The maps of another version of vcc, and where everything is in them.
pub struct Predecessor {
    flows: MapHandle,
    ports: MapHandle,
    theirs: Layout,
    ours: Layout,
}

/// A port whose connections were taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    pub device: String,
    pub index: u32,
    /// Whether its device is in this network namespace.
    pub is_here: bool,
    /// It takes no new connections.
    pub drains: bool,
    /// Whether a policy has its connections; false of one that was attached by hand.
    pub by_policy: bool,
    pub connections: usize,
    /// Those that the policy leaves alone from now on.
    pub left_alone: usize,
    /// Those that could not be taken over: for lack of room, or because none is as they are described.
    pub lost: usize,
}

/// A port of the other version.
struct Theirs {
    pin: Pin,
    index: u32,
    settings: sys::vcc_port,
}

/// A connection, as maps have it.
struct Described {
    flow: Flow,
    /// When its last segment was seen there, or it came there; on the clock of this host, modulo 2^32.
    seen_ms: u32,
    /// The maps in which it continues have it so.
    stays: bool,
}

impl Described {
    fn is_later_than(&self, other: &Self) -> bool {
        (self.seen_ms.wrapping_sub(other.seen_ms) as i32) > 0
    }
}

impl Predecessor {
    /// None if nothing is pinned, or what is pinned is this version's.
    pub fn find() -> Result<Option<Self>> {
        if !bpffs::has_home()? || pins::indices()?.is_empty() {
            return Ok(None);
        }
        let is_foreign = match Host::find()? {
            Found::Ours(_) => matches!(SharedPolicy::find(), Err(Error::OtherPolicyVersion)),
            Found::OtherVersion => true,
            Found::None => false,
        };
        // The first versions had programs and maps for each port, and no index.
        if !is_foreign || pins::all()?.iter().any(|pin| pin.index.is_none()) {
            return Ok(None);
        }
        Self::at(Path::new(host::PLACE)).map(Some)
    }

    /// Reads the pins in a directory.
    fn at(place: &Path) -> Result<Self> {
        let map = |name: &str| {
            MapHandle::from_pinned_path(place.join(name))
                .map_err(|_| Error::Undescribed { what: name.into() })
        };
        let theirs = match Layout::pinned(&place.join(host::LAYOUT))? {
            Some(layout) => layout,
            None => {
                let path = place.join(host::FROM_GUEST);
                let program = BpfProgram::fd_from_pinned_path(path);
                let program =
                    program.map_err(|_| Error::Undescribed { what: host::FROM_GUEST.into() })?;
                Layout::of_program(program.as_fd())?
            }
        };
        let found =
            Self { flows: map("flows")?, ports: map("ports")?, theirs, ours: host::layout()? };
        found.require_all()?;
        Ok(found)
    }

    /// Without one of these, a connection would continue as another one.
    fn require_all(&self) -> Result<()> {
        let entry = self.theirs.structure("vcc_entry")?;
        let of_flow = Field::needed().iter().map(|field| field.place).chain(["stage", "underlay"]);
        for place in of_flow {
            let name = format!("flow.{place}");
            if !entry.fields.contains_key(&name) {
                return Err(Error::Undescribed { what: name });
            }
        }
        let key = self.theirs.structure("vcc_key")?.bytes as u32;
        let key = if self.is_by_tag()? { size_of::<u64>() as u32 } else { key };
        let lengths = [
            (&self.flows, key, entry.bytes as u32),
            (&self.ports, 4, self.theirs.structure("vcc_port")?.bytes as u32),
        ];
        for (map, key, value) in lengths {
            if (map.key_size(), map.value_size()) != (key, value) {
                return Err(Error::Undescribed { what: "entries".into() });
            }
        }
        Ok(())
    }

    /// Whether their entries hold the connection's key, which was the map's once.
    fn is_by_tag(&self) -> Result<bool> {
        Ok(self.theirs.structure("vcc_entry")?.fields.contains_key("key.guest_addr"))
    }

    fn ports(&self) -> Result<Vec<Theirs>> {
        let mut ports = Vec::new();
        for pin in pins::all()?.into_iter().filter(Pin::is_complete) {
            let Some(index) = pin.index else { continue };
            let value = self.ports.lookup(&index.to_ne_bytes(), MapFlags::ANY);
            let value = value.map_err(|e| Error::system("read another version's ports", e))?;
            let Some(value) = value else { continue };
            let default = AttachOptions::default().port(false);
            let settings = self.translated("vcc_port", &value, default)?;
            ports.push(Theirs { pin, index, settings });
        }
        Ok(ports)
    }

    /// The connections that can continue at a port of this version, by the index of their port.
    fn flows(&self) -> Result<HashMap<u32, Vec<Described>>> {
        const DOING: &str = "read another version's connections";
        let mut flows: HashMap<u32, Vec<Described>> = HashMap::new();
        let mut batches = Batches::new(&self.flows, ROOM);
        let now_us = monotonic().as_micros() as u64;
        let by_tag = self.is_by_tag()?;
        while let Some(entries) = batches.next().map_err(|e| Error::system(DOING, e))? {
            for (key, value) in entries {
                let entry = self.translated("vcc_entry", value, sys::vcc_entry::default())?;
                let key = match by_tag {
                    true => entry.key,
                    false => self.translated("vcc_key", key, sys::vcc_key::default())?,
                };
                let Some(state) = travelling(entry.flow, now_us) else { continue };
                let flow = Flow::new(FlowId::of_key(&key), state.0);
                let seen_ms = entry.flow.last_seen_ms;
                let described = Described { flow, seen_ms, stays: false };
                flows.entry(key.port.into()).or_default().push(described);
            }
        }
        Ok(flows)
    }

    /// A value as this version has it. Where the other version has nothing, it is that of `value`.
    fn translated<T: crate::plain::Dense>(&self, name: &str, theirs: &[u8], value: T) -> Result<T> {
        let mut bytes = to_bytes(&value).to_vec();
        self.ours.structure(name)?.fill(&mut bytes, self.theirs.structure(name)?, theirs)?;
        from_bytes(&bytes).ok_or_else(|| Error::layout("read another version's maps"))
    }
}

/// None in a handshake whose SYN was not answered, and at its end.
fn travelling(flow: sys::vcc_flow, now_us: u64) -> Option<FlowState> {
    let mut state = FlowState(flow);
    if !state.can_travel() {
        state = state.answered(now_us)?;
    }
    // Its window is one of segments under any underlay.
    if Underlay::from_number(state.underlay).is_none() {
        state.0.underlay = Underlay::built_in().find(|it| it.controls())?.number();
    }
    Some(state)
}
