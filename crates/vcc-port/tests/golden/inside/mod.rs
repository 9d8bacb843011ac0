//! Connections inside tunnels: what is inside is changed as it would be outside, and what is outside
//! stays right.

mod alike;
mod ecn;
mod others;

use std::net::IpAddr;

use vcc_engine::Params;
use vcc_frames::{Tunnel, TunnelHeader, hex};
use vcc_policy::{TunnelKind, Tunnels};
use vcc_port::{AttachOptions, RunOutput};

use crate::direction::{Direction, NEXT};
use crate::loaded::Loaded;
use crate::setup::usually;

const VXLAN_PORT: u16 = 4789;
const VXLAN_LINUX_PORT: u16 = 8472;

fn all_kinds() -> Tunnels {
    TunnelKind::ALL.into_iter().collect()
}

/// Looks into tunnels of all kinds.
fn looking_inside(params: Params) -> AttachOptions {
    AttachOptions { inside: all_kinds(), ..usually(params) }
}

fn ends(ipv6: bool) -> [IpAddr; 2] {
    let ends = if ipv6 { ["fd99::1", "fd99::2"] } else { ["172.16.0.1", "172.16.0.2"] };
    ends.map(|end| end.parse().expect("an address"))
}

/// A tunnel from the guest.
fn tunnel(header: TunnelHeader, ipv6: bool, checksum: bool) -> Tunnel {
    let [from, to] = ends(ipv6);
    let limit = ipv6 && matches!(header, TunnelHeader::Gre { .. });
    Tunnel { header, from, to, checksum, limit }
}

fn vxlan(vni: u32) -> Tunnel {
    tunnel(TunnelHeader::Vxlan { port: VXLAN_PORT, vni }, false, true)
}

/// Each kind, with and without what it may have.
fn tunnels() -> Vec<Tunnel> {
    let gre = |key, sequence, ethernet| TunnelHeader::Gre { key, sequence, ethernet };
    let geneve = |options: &[u8], ethernet| TunnelHeader::Geneve {
        vni: 0xabcdef,
        options: options.to_vec(),
        ethernet,
    };
    let option = [1, 2, 3, 1, 9, 9, 9, 9];
    let headers = [
        TunnelHeader::Vxlan { port: VXLAN_PORT, vni: 5 },
        TunnelHeader::Vxlan { port: VXLAN_LINUX_PORT, vni: 0xffffff },
        geneve(&[], true),
        geneve(&option, true),
        geneve(&option.repeat(14), false),
        gre(None, None, true),
        gre(None, None, false),
        gre(Some(77), None, false),
        gre(Some(77), Some(4), true),
        gre(None, Some(4), false),
    ];
    let mut tunnels = Vec::new();
    for header in headers {
        for (ipv6, checksum) in [(false, true), (false, false), (true, true), (true, false)] {
            tunnels.push(tunnel(header.clone(), ipv6, checksum));
        }
    }
    tunnels
}

/// As the end sends that is meant.
fn seen_from(tunnel: &Tunnel, from: Direction) -> Tunnel {
    match from {
        Direction::FromGuest => tunnel.clone(),
        Direction::ToGuest => tunnel.reversed(),
    }
}

fn run(port: &Loaded, from: Direction, frame: &[u8], gso_size: u32) -> RunOutput {
    port.run(from.program(), frame, gso_size).expect("it runs")
}

fn assert_untouched(port: &Loaded, from: Direction, frame: &[u8]) {
    let output = run(port, from, frame, 0);
    assert_eq!((output.return_value, hex(&output.frame)), (NEXT, hex(frame)));
}
