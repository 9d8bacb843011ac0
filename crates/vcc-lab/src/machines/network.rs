//! The host of the virtual machines and their peer: two namespaces with a link of a limited rate.

use super::file::Machines;
use super::link::Link;
use crate::backend::live::hosts::{Netns, Tap, ip_batch, limits, quiet_ipv6};
use crate::base::error::Result;
use crate::scenario::{Limits, tcp_parameters};
use std::net::Ipv4Addr;

pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 1);
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 2);
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 3);
/// Of these addresses.
const SUBNET: &str = "10.80.0.0/24";
pub const TAP: &str = "tap0";
pub const BRIDGE: &str = "bridge";
const UPLINK: &str = "uplink";
const PEER_DEVICE: &str = "eth0";
/// Room for a whole window at the token bucket.
const QUEUE_FRAMES: u32 = 5000;

pub struct Network {
    pub host: Netns,
    pub peer: Netns,
    pub link: Link,
}

impl Network {
    pub fn create(machines: &Machines) -> Result<Self> {
        let (host, peer) = (Netns::create()?, Netns::create()?);
        for namespace in [&host, &peer] {
            quiet_ipv6(namespace)?;
            namespace.set(&tcp_parameters(false, true))?;
            // The kernel's default need not be one that every namespace may have.
            namespace.set(&[("ipv4/tcp_congestion_control", "reno")])?;
        }
        let taps = [
            host.inside(|| Tap::with_offloads(UPLINK))?,
            peer.inside(|| Tap::with_offloads(PEER_DEVICE))?,
        ];
        let commands = format!(
            "link set lo up\n\
             link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set {UPLINK} txqueuelen {QUEUE_FRAMES} master {BRIDGE} up\n\
             tuntap add dev {TAP} mode tap\n\
             link set {TAP} master {BRIDGE} up\n\
             addr add {HOST}/24 dev {BRIDGE}\n\
             link set {BRIDGE} up\n\
             route add default via {PEER}\n"
        );
        host.inside(|| ip_batch("the host", &commands))?;
        let commands = format!(
            "link set lo up\n\
             addr add {PEER}/24 dev {PEER_DEVICE}\n\
             link set {PEER_DEVICE} txqueuelen {QUEUE_FRAMES} up\n"
        );
        peer.inside(|| ip_batch("the peer", &commands))?;
        let limit = &Limits {
            rate_bps: Some(u64::from(machines.rate_mbps) * 1_000_000),
            initial_segs: machines.peer_initial_window_segs,
            ..Limits::default()
        };
        host.inside(|| limits::set_on_uplink(limit, UPLINK))?;
        peer.inside(|| limits::set_on_uplink(limit, PEER_DEVICE))?;
        let route = format!("{SUBNET} dev {PEER_DEVICE} scope link src {PEER}");
        peer.inside(|| limits::set_in_guest(limit, "the peer", &route))?;
        let link = Link::between(taps, u64::from(machines.rtt_us) * 1000 / 2)?;
        Ok(Self { host, peer, link })
    }
}
