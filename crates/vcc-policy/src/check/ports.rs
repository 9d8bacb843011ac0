//! The host's ports.

use std::collections::HashMap;
use std::ptr;

use vcc_engine::BufferPolicy;

use crate::MAX_SELECTORS;
use crate::file::{Located, PolicyFile, PortTable};
use crate::listing::listing;
use crate::policy::Policy;
use crate::port::{Order, PortBuffer, PortPattern, PortSelector};
use crate::problem::{Findings, Span};
use crate::text::shortened;
use crate::tunnels::Tunnels;

pub(super) fn check(file: &PolicyFile, findings: &mut Findings<'_>) -> Vec<PortSelector> {
    // After an error, an unreadable part of the file may have been a port.
    if file.ports.as_ref().is_none_or(|ports| ports.value.is_empty()) && findings.errors() == 0 {
        findings.warning(
            &findings.end(),
            "there are no [[ports]]: with this policy a daemon detaches from all devices",
        );
    }
    let ports = || file.ports.iter().flat_map(|ports| &ports.value);
    if let Some(first_too_many) = ports().nth(MAX_SELECTORS) {
        let count = ports().count();
        findings.error_of_all(
            &first_too_many.span,
            format!("too many [[ports]]: {count}; at most {MAX_SELECTORS} are possible"),
        );
        return Vec::new();
    }
    let mut before: Vec<(&PortPattern, usize)> = Vec::new();
    let found: Vec<(&Located<PortTable>, PortPattern)> =
        ports().filter_map(|port| Some((port, pattern(port, findings)?))).collect();
    for (port, pattern) in &found {
        let (_, span) = pattern_of(&port.value);
        if let Some((wider, line)) = before.iter().find(|(wider, _)| covers(wider, pattern)) {
            let what = if pattern.is_of_devices() { "devices" } else { "sockets" };
            let wider = shortened(wider.glob().as_str());
            findings.warning(
                span,
                format!(
                    "never reached: `{wider}` in line {line} matches all of these {what} first"
                ),
            );
        }
        before.push((pattern, findings.line(span)));
    }
    let selector = |(port, at): (&Located<PortTable>, PortPattern)| PortSelector {
        at,
        span: pattern_of(&port.value).1.clone(),
        tenant: port.value.tenant.as_ref().map(|tenant| tenant.value.0.clone()),
        class: port.value.class.as_ref().map(|class| class.value.0.clone()),
        guest: port.value.guest.as_ref().map(|guest| guest.value.0.clone()),
        max_flows: port
            .value
            .max_flows
            .as_ref()
            .map_or(PortSelector::DEFAULT_MAX_FLOWS, |n| n.value.0),
        inside: port.value.inside.as_ref().map_or(Tunnels::NONE, |it| it.value),
        order: port
            .value
            .order
            .as_ref()
            .and_then(|order| Order::from_number(order.value.0))
            .unwrap_or_default(),
    };
    let tables: Vec<&Located<PortTable>> = found.iter().map(|(port, _)| *port).collect();
    let selectors: Vec<PortSelector> = found.into_iter().map(selector).collect();
    check_guests(&tables, &selectors, findings);
    selectors
}

/// Devices of the host that a pattern matches, and which the daemon therefore leaves alone.
pub(super) fn warn_of_host_devices(
    policy: &Policy,
    devices: &[(String, String)],
    findings: &mut Findings<'_>,
) {
    for port in policy.ports() {
        let is_meant = |name: &str| {
            policy.port_of(name).is_some_and(|first| ptr::eq(first, port)) && !port.names(name)
        };
        let meant: Vec<String> = devices
            .iter()
            .filter(|(name, _)| is_meant(name))
            .map(|(name, what)| format!("{name} ({what})"))
            .collect();
        if meant.is_empty() {
            continue;
        }
        findings.warning(
            &port.span,
            format!(
                "`{}` also matches devices of this host itself, to which vcc does not attach by a pattern: \
                 {}; match guests' devices alone, like device = \"vnet*\", or name such a device in full \
                 in a [[ports]] before this one",
                shortened(port.pattern()),
                listing(&meant, ", ")
            ),
        );
    }
}

/// The devices of a guest are one port, which has one tenant, one class, one table and one set of tunnels.
fn check_guests(
    tables: &[&Located<PortTable>],
    selectors: &[PortSelector],
    findings: &mut Findings<'_>,
) {
    let mut first: HashMap<&str, (&PortSelector, usize)> = HashMap::new();
    for (table, selector) in tables.iter().zip(selectors) {
        let Some(guest) = &table.value.guest else { continue };
        let name = guest.value.0.as_str();
        let line = findings.line(&guest.span);
        let (before, line) = *first.entry(name).or_insert((selector, line));
        let differ = [
            ("tenant", before.tenant != selector.tenant),
            ("class", before.class != selector.class),
            ("max_flows", before.max_flows != selector.max_flows),
            ("inside", before.inside.bits() != selector.inside.bits()),
        ];
        for (key, _) in differ.into_iter().filter(|(_, differs)| *differs) {
            findings.error(
                &guest.span,
                format!(
                    "the devices of the guest `{}` are one port, and their `{key}` differs from that in \
                     line {line}: give both the same, or two guests",
                    shortened(name)
                ),
            );
        }
    }
}

/// What a table's ports are. None if that is an error.
fn pattern(port: &Located<PortTable>, findings: &mut Findings<'_>) -> Option<PortPattern> {
    let PortTable { device, socket, guest, buffer, buffer_policy, inside, order, .. } = &port.value;
    match (device, socket) {
        (Some(device), None) if buffer.is_some() => {
            for (key, span, why) in [
                ("inside", inside.as_ref().map(|it| &it.span), "it does not look into tunnels"),
                ("order", order.as_ref().map(|it| &it.span), "it goes before all other programs"),
                ("guest", guest.as_ref().map(|it| &it.span), "each process serves one device"),
            ] {
                let Some(span) = span else { continue };
                findings.error(
                    span,
                    format!(
                        "`{key}` is for a port without a `buffer`, as `vcc domain --device` serves this \
                         one: {why}"
                    ),
                );
            }
            Some(PortPattern::Detour(device.value.0.clone(), port_buffer(&port.value)))
        }
        (Some(device), None) => {
            if let Some(policy) = buffer_policy {
                findings.error(
                    &policy.span,
                    "`buffer_policy` needs a `buffer`, like buffer = \"4M\", with which `vcc domain \
                     --device` serves the port: one in the kernel has none",
                );
            }
            Some(PortPattern::Device(device.value.0.clone()))
        }
        (None, Some(socket)) => {
            if let Some(inside) = inside {
                findings.error(
                    &inside.span,
                    "`inside` is for a port with a `device`: one with a buffer does not look into tunnels",
                );
            }
            if let Some(order) = order {
                findings.error(
                    &order.span,
                    "`order` is for a port with a `device`: no other program is at a socket",
                );
            }
            if let Some(guest) = guest {
                findings.error(
                    &guest.span,
                    "`guest` is for a port with a `device`: each socket is a guest's",
                );
            }
            Some(PortPattern::Socket(socket.value.0.clone(), port_buffer(&port.value)))
        }
        (Some(_), Some(socket)) => {
            findings.error(&socket.span, "a port has a `device` or a `socket`, not both");
            None
        }
        (None, None) => {
            if port.is_sound {
                findings.error(
                    &port.span,
                    "`device` is missing, like device = \"vnet*\", or `socket`, like \
                     socket = \"/run/vcc-domain-*/card\"",
                );
            }
            None
        }
    }
}

fn port_buffer(port: &PortTable) -> PortBuffer {
    let default = PortBuffer::default();
    let policy = port.buffer_policy.as_ref().and_then(|policy| policy.value.0.try_into().ok());
    PortBuffer {
        size_bytes: port.buffer.as_ref().map_or(default.size_bytes, |size| size.value.0),
        policy: policy.and_then(BufferPolicy::from_number).unwrap_or(default.policy),
    }
}

/// The pattern of a port that has one, and its place.
pub(super) fn pattern_of(port: &PortTable) -> (&str, &Span) {
    let device = port.device.as_ref().map(|device| (device.value.0.as_str(), &device.span));
    let socket = port.socket.as_ref().map(|socket| (socket.value.0.as_str(), &socket.span));
    device.or(socket).expect("a port without a pattern is an error")
}

/// Does every name that matches `narrow` match `wide`? Only where it is plain to see.
fn covers(wide: &PortPattern, narrow: &PortPattern) -> bool {
    if wide.is_of_devices() != narrow.is_of_devices() {
        return false;
    }
    let (wide, narrow) = (wide.glob(), narrow.glob());
    let is_plain = |pattern: &str| !pattern.contains(['*', '?', '[']);
    // A prefix with `*` matches all names that begin with a longer literal prefix.
    let prefix = wide.as_str().strip_suffix('*').filter(|prefix| is_plain(prefix));
    wide == narrow
        || (is_plain(narrow.as_str()) && wide.matches(narrow.as_str()))
        || prefix.is_some_and(|prefix| narrow.as_str().starts_with(prefix))
}
