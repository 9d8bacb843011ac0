//! Packet sockets on the device, such as tcpdump's.

use super::neighbours::Neighbours;
use super::{Found, openvswitch};
use crate::Result;

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let others: Vec<String> = at
        .sockets
        .iter()
        .filter(|socket| !openvswitch::has(socket))
        .map(ToString::to_string)
        .collect();
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let found = format!("packet sockets (AF_PACKET) of {}", others.join(", "));
    let meaning = "\
        They get the guest's segments as the guest sent them, before vcc, and those to the guest \
        as vcc wrote them. That is right for a capture; a switch that forwards what it gets so \
        would undo vcc.";
    Ok(vec![Found::note(found, meaning)])
}
