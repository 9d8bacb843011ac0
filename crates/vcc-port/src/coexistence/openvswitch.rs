//! Open vSwitch, with its datapath in the kernel or in user space.

use super::Found;
use super::neighbours::{Neighbours, PacketSocket};
use crate::Result;

const DAEMON: &str = "ovs-vswitchd";

/// Whether the switch's daemon has a socket.
pub(super) fn has(socket: &PacketSocket) -> bool {
    socket.owner.as_ref().is_some_and(|process| process.name == DAEMON)
}

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let name = &at.device.name;
    let mut all = Vec::new();
    if let Some(datapath) = at.master().filter(|master| master.is_a(&["openvswitch"])) {
        let found =
            format!("{name} is a port of Open vSwitch's kernel datapath ({})", datapath.name);
        let meaning = "\
            The datapath gets the guest's segments after vcc; vcc gets segments to the guest \
            after the datapath.";
        all.push(Found::note(found, meaning));
    }
    if let Some(socket) = at.sockets.iter().find(|socket| has(socket)) {
        let found = format!(
            "{name} is a port of Open vSwitch's user-space datapath: {socket} has a packet \
             socket on it"
        );
        let meaning = "\
            A packet socket gets the guest's segments before vcc changes them, so what is \
            forwarded is untranslated, while vcc still changes those to the guest.";
        all.push(Found::problem(found, meaning).remedy(
            "use the bridge with `datapath_type=system`, or serve the guest's card by `vcc domain`",
        ));
    }
    Ok(all)
}
