//! Which rule the datapath finds for a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vcc_frames::{Packet, options};
use vcc_policy::{Connection, Role};
use vcc_port::{Program, counters};

use super::*;
use crate::random::Random;

fn syn(from: SocketAddr, to: SocketAddr, vlan: Option<u16>) -> Packet {
    let mut packet = Packet::syn(from, to);
    packet.options = options::join(&[options::mss(1460), options::nops(1), options::wscale(7)]);
    packet.tags = vlan.map(|id| (0x8100, id)).into_iter().collect();
    packet
}

/// One of few addresses, so that rules match connections.
fn address(rng: &mut Random) -> IpAddr {
    let low = rng.below(4) as u8;
    match rng.below(3) {
        0 => Ipv4Addr::new(10, low, rng.below(3) as u8, rng.below(3) as u8).into(),
        1 => Ipv4Addr::new(192, 0, 2, low).into(),
        _ => Ipv6Addr::new(0xfd00, low.into(), 0, rng.below(3) as u16, 0, 0, 0, 1).into(),
    }
}

fn network(rng: &mut Random) -> String {
    let (address, longest) = match address(rng) {
        IpAddr::V4(address) => (IpAddr::from(address), 32),
        IpAddr::V6(address) => (IpAddr::from(address), 128),
    };
    let length =
        [0, 7, 8, 16, 22, 24, 30, 31, 32, 64, 127, 128][rng.below(12) as usize].min(longest);
    let net = ipnet::IpNet::new(address, length).expect("a length").trunc();
    format!("\"{net}\"")
}

fn random_policy(rng: &mut Random) -> String {
    let mut text = String::from(
        "[[ports]]\ndevice = \"a*\"\ntenant = \"acme\"\n\
         [[ports]]\ndevice = \"b*\"\ntenant = \"bolt\"\n",
    );
    for number in 0..rng.below(40) {
        text += &format!("[[rules]]\nname = \"r{number}\"\n");
        if rng.below(4) == 0 {
            text +=
                ["tenant = \"acme\"\n", "tenant = [\"acme\", \"bolt\"]\n"][rng.below(2) as usize];
        }
        if rng.below(2) == 0 {
            let nets: Vec<String> = (0..=rng.below(3)).map(|_| network(rng)).collect();
            text += &format!("peer = [{}]\n", nets.join(", "));
        }
        for (key, chance) in [("guest_port", 4), ("peer_port", 4)] {
            if rng.below(chance) == 0 {
                let first = 1 + rng.below(6);
                text += &format!("{key} = \"{first}-{}\"\n", first + rng.below(3));
            }
        }
        if rng.below(5) == 0 {
            text += ["role = \"client\"\n", "role = \"server\"\n"][rng.below(2) as usize];
        }
        if rng.below(5) == 0 {
            text += &format!("vlan = {}\n", rng.below(3));
        }
        if rng.below(8) == 0 {
            text += "mode = \"ignore\"\n";
        }
    }
    text + "[default]\nunderlay = \"dctcp\"\n"
}

/// Compares the kernel's lookups with a linear search, over random policies and connections, many
/// of them at the edges of networks and ranges.
#[test]
fn the_datapath_finds_the_rule_that_the_file_says() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut rng = Random::new(0x5eed_9011);
    let mut ruled = Ruled::new("", Some("acme"));
    let (mut ignored, mut matched) = (0, std::collections::BTreeSet::new());
    for _ in 0..40 {
        let tenant = [Some("acme"), Some("bolt"), None][rng.below(3) as usize];
        ruled.tenant = tenant;
        ruled.apply(&random_policy(&mut rng));
        for _ in 0..60 {
            let guest = address(&mut rng);
            let mut peer = address(&mut rng);
            while peer.is_ipv4() != guest.is_ipv4() {
                peer = address(&mut rng);
            }
            let connection = Connection {
                tenant: tenant.map(str::to_owned),
                class: None,
                guest: SocketAddr::new(guest, 1 + rng.below(8) as u16),
                peer: SocketAddr::new(peer, 1 + rng.below(8) as u16),
                vlan: [None, Some(1), Some(2)][rng.below(3) as usize],
                role: [Role::Client, Role::Server][rng.below(2) as usize],
            };
            ruled.datapath.forget_flows().expect("forgotten");
            let before = ruled.datapath.counters().expect("counters").get(counters::IGNORED);
            let Connection { guest, peer, vlan, .. } = connection;
            match connection.role {
                Role::Client => ruled.send(Program::FromGuest, &syn(guest, peer, vlan)),
                Role::Server => ruled.send(Program::ToGuest, &syn(peer, guest, vlan)),
            };
            let expected = &ruled.policy.rules()[ruled.policy.judge(&connection)];
            let after = ruled.datapath.counters().expect("counters").get(counters::IGNORED);
            match ruled.rule() {
                Some(name) => assert_eq!(name, expected.name(), "{connection:?}"),
                None => assert_eq!(expected.treatment().mode().to_string(), "ignore"),
            }
            assert_eq!(after - before, u64::from(ruled.rule().is_none()));
            ignored += after - before;
            matched.insert(expected.name().to_owned());
        }
    }
    assert!(ignored > 50 && matched.len() > 10, "{ignored} {matched:?}");
}
