//! Offloads of the port, and of the devices from and to which its segments may go.

use super::Found;
use super::neighbours::{Link, Neighbours, features};
use crate::Result;

/// GRO keeps the packets of a TCP connection or a UDP flow as a list.
const LIST: &str = "rx-gro-list";
/// GRO merges UDP packets of any flow that is forwarded.
const UDP: &str = "rx-udp-gro-forwarding";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for device in devices(at) {
        let active = features::active(device)?;
        let has = |feature: &str| active.iter().any(|name| name == feature);
        let merges: Vec<&str> = [LIST, UDP].into_iter().filter(|name| has(name)).collect();
        if !merges.is_empty() {
            found.extend(merged(at, device, &merges)?);
        }
        if device != at.device.name && has("tx-tcp-segmentation") && !has("tx-tcp-ecn-segmentation")
        {
            found.push(unmarked(device));
        }
    }
    Ok(found)
}

/// The port, the other ports of its bridge, and the cards.
fn devices<'a>(at: &'a Neighbours<'_>) -> impl Iterator<Item = &'a str> {
    let is_way = |link: &&Link| {
        link.index != at.link.index
            && (link.hardware.is_some() || (link.master.is_some() && link.master == at.link.master))
    };
    let others = at.around.links.iter().filter(is_way).map(|link| link.name.as_str());
    std::iter::once(at.device.name.as_str()).chain(others)
}

fn merged(at: &Neighbours<'_>, device: &str, features: &[&str]) -> Result<Option<Found>> {
    let inside = at.inside()?;
    let found = format!("{} of {device} is on", features.join(" and "));
    let off: Vec<String> = features.iter().map(|feature| format!("{feature} off")).collect();
    let remedy = format!("`ethtool -K {device} {}`", off.join(" "));
    if !inside.is_empty() {
        let meaning = "\
            UDP packets come merged, and vcc looks into none of those: connections inside VXLAN and \
            Geneve pass untranslated, or are dropped where a rule polices.";
        return Ok(Some(Found::warning(found, meaning).remedy(remedy)));
    }
    let meaning = "\
        The kernel keeps packets of TCP as a list behind the first one's headers. vcc makes one \
        packet of each such list before it rewrites it, which copies all of it.";
    let copies = features.contains(&LIST);
    Ok(copies.then(|| Found::note(found, meaning).remedy(remedy)))
}

fn unmarked(device: &str) -> Found {
    let found = format!("{device} segments TCP, but tx-tcp-ecn-segmentation is off");
    let meaning = "\
        A super-segment with CWR goes to it whole, for a program at TCX cannot mark it as one. If \
        the device repeats CWR in each part, a Linux receiver acknowledges each at once, and \
        echoes a mark once instead of until the next CWR.";
    Found::note(found, meaning)
        .remedy(format!("`ethtool -K {device} tso off`, if the acknowledgements matter"))
}
