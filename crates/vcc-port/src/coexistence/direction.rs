//! Devices whose far side is the fabric instead of a guest.

use std::fs;
use std::io;

use super::Found;
use super::neighbours::Neighbours;
use crate::{Error, Result};

const MEANING: &str = "\
    What the device receives seems to come from the fabric and not from a guest: vcc would take \
    each end for the other.";
const REMEDY: &str = "\
    attach to the host side of the guest's own device: its tap, or its veth's end outside of the \
    guest";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let name = &at.device.name;
    let found = if let Some(hardware) = &at.link.hardware {
        format!("{name} is a card ({hardware})")
    } else if at.link.is_on_top() {
        format!("{name} is a {}, by which its guest sends", at.link.kind.as_deref().unwrap_or(""))
    } else if has_default_route(name)? {
        format!("the default route of this network namespace leaves by {name}")
    } else {
        return Ok(Vec::new());
    };
    Ok(vec![Found::warning(found, MEANING).remedy(REMEDY)])
}

/// IPv4's and IPv6's.
pub(super) fn has_default_route(device: &str) -> Result<bool> {
    Ok(table("route")?.lines().any(|line| is_default(line, device))
        || table("ipv6_route")?.lines().any(|line| is_default_v6(line, device)))
}

/// Empty if the kernel lacks the protocol. It names all devices of the namespace, by any bytes.
fn table(name: &str) -> Result<String> {
    let path = format!("/proc/thread-self/net/{name}");
    match fs::read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(Error::system(format!("read {path}"), e)),
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask.
fn is_default(line: &str, device: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.first() == Some(&device)
        && words.get(1) == Some(&"00000000")
        && words.get(7) == Some(&"00000000")
}

/// Destination, its length, source, its length, next hop, metric, references, use, flags, device.
/// Each namespace has an entry of this kind for what has no route, by `lo`.
fn is_default_v6(line: &str, device: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.get(1) == Some(&"00") && words.get(3) == Some(&"00") && words.get(9) == Some(&device)
}
