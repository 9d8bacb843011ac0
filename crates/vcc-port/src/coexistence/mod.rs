//! Who else works on a port's device, and whether vcc sees and writes the segments as it should.
//!
//! Each kind of neighbour is a file and an entry of [`KINDS`]; `neighbours` reads what they judge.

mod bond;
mod bridge;
mod detour;
mod direction;
mod encapsulation;
mod filter;
mod host_device;
mod link_layer;
mod macvlan;
mod neighbours;
mod offload;
mod openvswitch;
mod packet_socket;
mod qdisc;
mod tcx;
mod traffic;
mod tunnel;
mod vrf;
mod xdp;

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::tcx::Hook;
use crate::{Error, Result};
pub use host_device::{HostDevice, host_device, host_devices};
use neighbours::{Link, Neighbours, Surroundings};

/// From the harmless to the harmful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works together.
    Note,
    /// Under a condition that the finding names, vcc misses segments or misjudges them.
    Warning,
    /// vcc does not see segments, or what it writes has no effect.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: String,
    pub severity: Severity,
    /// Names, IDs and numbers.
    pub found: String,
    /// The consequence for vcc.
    pub meaning: String,
    /// The next step, where there is one.
    pub remedy: Option<String>,
}

impl Finding {
    /// It hides segments from vcc or turns its figures wrong, or may.
    pub fn is_harmful(&self) -> bool {
        self.severity >= Severity::Warning
    }

    /// A sentence about a device, for people.
    pub fn describe(&self, device: &str) -> String {
        let (found, meaning) = (&self.found, self.meaning.trim_end_matches('.'));
        format!("{device}: {found}. {meaning} (`vcc doctor --device {device}`)")
    }
}

/// A kind of neighbour.
struct Kind {
    name: &'static str,
    look: fn(&Neighbours<'_>) -> Result<Vec<Found>>,
}

/// In the order in which a frame from the guest meets them.
const KINDS: &[Kind] = &[
    Kind { name: "traffic", look: traffic::check },
    Kind { name: "link-layer", look: link_layer::check },
    Kind { name: "direction", look: direction::check },
    Kind { name: "offload", look: offload::check },
    Kind { name: "xdp", look: xdp::check },
    Kind { name: "packet-socket", look: packet_socket::check },
    Kind { name: "detour", look: detour::check },
    Kind { name: "tcx", look: tcx::check },
    Kind { name: "tc-filter", look: filter::check },
    Kind { name: "openvswitch", look: openvswitch::check },
    Kind { name: "bridge", look: bridge::check },
    Kind { name: "bond", look: bond::check },
    Kind { name: "vrf", look: vrf::check },
    Kind { name: "macvlan", look: macvlan::check },
    Kind { name: "tunnel", look: tunnel::check },
    Kind { name: "encapsulation", look: encapsulation::check },
    Kind { name: "qdisc", look: qdisc::check },
];

/// What a kind has found.
#[derive(Debug)]
struct Found {
    severity: Severity,
    found: String,
    meaning: String,
    remedy: Option<String>,
}

impl Found {
    fn new(severity: Severity, found: String, meaning: impl Into<String>) -> Self {
        Self { severity, found, meaning: meaning.into(), remedy: None }
    }

    fn note(found: String, meaning: impl Into<String>) -> Self {
        Self::new(Severity::Note, found, meaning)
    }

    fn warning(found: String, meaning: impl Into<String>) -> Self {
        Self::new(Severity::Warning, found, meaning)
    }

    fn problem(found: String, meaning: impl Into<String>) -> Self {
        Self::new(Severity::Problem, found, meaning)
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

/// Looks at a device of the calling thread's network namespace. With `watch`, also compares for
/// that time what passes the device with what reaches vcc, if vcc is attached; that takes
/// CAP_SYS_ADMIN, and all programs of the machine are timed meanwhile.
pub fn findings(device: &str, watch: Option<Duration>) -> Result<Vec<Finding>> {
    Around::read()?.findings_during(device, watch)
}

/// All devices of a network namespace, read once to look at several of them.
pub struct Around(Surroundings);

impl Around {
    /// Of the calling thread's network namespace.
    pub fn read() -> Result<Self> {
        Ok(Self(Surroundings::read()?))
    }

    /// Like [`findings`], without watching.
    pub fn findings(&self, device: &str) -> Result<Vec<Finding>> {
        self.findings_during(device, None)
    }

    fn findings_during(&self, device: &str, watch: Option<Duration>) -> Result<Vec<Finding>> {
        Ok(findings_from(&Neighbours::read(Device::named(device)?, &self.0, watch)?))
    }
}

/// The revisions of a device's two TCX hooks: the kernel counts the changes of each.
pub fn revisions(ifindex: u32) -> Result<[u64; 2]> {
    let revision = |hook| {
        let attached = crate::tcx::attached(ifindex, hook);
        let attached = attached.map_err(|e| Error::system("read the revision of a TCX hook", e))?;
        Ok(attached.revision)
    };
    let [from_guest, to_guest] = Hook::BOTH;
    Ok([revision(from_guest)?, revision(to_guest)?])
}

/// The packets that each device of the calling thread's network namespace has received and sent, by
/// ifindex.
pub fn packets() -> Result<HashMap<u32, u64>> {
    let links = Link::all().map_err(|e| Error::system("list the network devices", e))?;
    let packets = |link: &Link| (link.index, link.packets.received + link.packets.sent);
    Ok(links.iter().map(packets).collect())
}

fn findings_from(neighbours: &Neighbours<'_>) -> Vec<Finding> {
    let of_kind = |kind: &Kind| {
        let name = kind.name;
        let found = (kind.look)(neighbours).unwrap_or_else(|error| vec![unknown(&error)]);
        found.into_iter().map(move |Found { severity, found, meaning, remedy }| Finding {
            kind: name.to_owned(),
            severity,
            found,
            meaning,
            remedy,
        })
    };
    KINDS.iter().flat_map(of_kind).collect()
}

/// An unknown state may hurt.
fn unknown(error: &crate::Error) -> Found {
    Found::warning(error.to_string(), "It is unknown whether there is anything of this kind.")
}

#[cfg(test)]
mod tests;
