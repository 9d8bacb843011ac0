//! The host of the virtual machines and their peer: two namespaces with a link of a limited rate.

use crate::backend::live::hosts::{Netns, ip_batch, limits, quiet_ipv6};
use crate::base::error::Result;
use crate::scenario::{Limits, tcp_parameters};
use std::net::Ipv4Addr;

pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 1);
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 2);
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 3);
pub const TAP: &str = "tap0";
pub const BRIDGE: &str = "bridge";
const UPLINK: &str = "uplink";
const PEER_DEVICE: &str = "eth0";
/// Room for a whole window at the token bucket.
const QUEUE_FRAMES: u32 = 5000;

pub struct Network {
    pub host: Netns,
    pub peer: Netns,
}

impl Network {
    pub fn create(rate_mbps: u32) -> Result<Self> {
        let network = Self { host: Netns::create()?, peer: Netns::create()? };
        let Self { host, peer } = &network;
        for namespace in [host, peer] {
            quiet_ipv6(namespace)?;
            namespace.set(&tcp_parameters(false, true))?;
            // The kernel's default need not be one that every namespace may have.
            namespace.set(&[("ipv4/tcp_congestion_control", "reno")])?;
        }
        let peer_path = peer.path();
        let commands = format!(
            "link set lo up\n\
             link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link add {UPLINK} txqueuelen {QUEUE_FRAMES} type veth peer name {PEER_DEVICE} \
             netns {peer_path}\n\
             link set {UPLINK} master {BRIDGE} up\n\
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
        let rate_bps = Some(u64::from(rate_mbps) * 1_000_000);
        let limit = &Limits { rate_bps, ..Limits::default() };
        host.inside(|| limits::set_on_uplink(limit, UPLINK))?;
        peer.inside(|| limits::set_on_uplink(limit, PEER_DEVICE))?;
        Ok(network)
    }
}
