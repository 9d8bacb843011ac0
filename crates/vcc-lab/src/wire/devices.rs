//! Two guests of one hypervisor: veth, bridge, veth.

use crate::backend::live::hosts::{
    Netns, Proxy, ip_batch, limits, quiet_ipv6, set_proxy, tc_batch,
};
use crate::base::error::Result;
use crate::scenario::{Limits, tcp_parameters};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const GUEST_DEVICE: &str = "eth0";
const NETWORK_BITS: u32 = 24;
/// The hypervisor's address: a proxy listens there, and its own connections begin there.
const HYPERVISOR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Sender,
    Receiver,
}

impl Place {
    pub const BOTH: [Self; 2] = [Self::Sender, Self::Receiver];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "the sender",
            Self::Receiver => "the receiver",
        }
    }

    pub const fn port(self) -> &'static str {
        match self {
            Self::Sender => "port0",
            Self::Receiver => "port1",
        }
    }

    pub fn address(self) -> IpAddr {
        match self {
            Self::Sender => Ipv4Addr::new(10, 78, 0, 2).into(),
            Self::Receiver => Ipv4Addr::new(10, 78, 0, 3).into(),
        }
    }
}

pub struct Wire {
    hypervisor: Netns,
    guests: [Netns; 2],
    sack: bool,
}

impl Wire {
    /// Offloads are as the kernel has them: super-segments pass whole.
    pub fn create(sack: bool) -> Result<Self> {
        let wire = Self {
            hypervisor: Netns::create()?,
            guests: [Netns::create()?, Netns::create()?],
            sack,
        };
        for namespace in wire.guests.iter().chain([&wire.hypervisor]) {
            quiet_ipv6(namespace)?;
            namespace.set(&tcp_parameters(false, sack))?;
            // A SYN cookie loses most of the SYN's options.
            namespace.set(&[("ipv4/tcp_syncookies", "0")])?;
        }
        let mut commands =
            "link add bridge type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n".to_owned();
        for place in Place::BOTH {
            let (port, guest) = (place.port(), wire.guest(place).path());
            commands += &format!(
                "link add {port} type veth peer name {GUEST_DEVICE} netns {guest}\n\
                 link set {port} master bridge up\n"
            );
        }
        commands += &format!(
            "link set lo up\n\
             addr add {HYPERVISOR_ADDRESS}/{NETWORK_BITS} dev bridge\n\
             link set bridge up\n"
        );
        wire.hypervisor.inside(|| ip_batch("the hypervisor", &commands))?;
        for place in Place::BOTH {
            let commands = format!(
                "link set lo up\n\
                 addr add {}/{NETWORK_BITS} dev {GUEST_DEVICE}\n\
                 link set {GUEST_DEVICE} up\n",
                place.address()
            );
            wire.guest(place).inside(|| ip_batch(place.name(), &commands))?;
        }
        Ok(wire)
    }

    pub fn hypervisor(&self) -> &Netns {
        &self.hypervisor
    }

    pub fn guest(&self, place: Place) -> &Netns {
        match place {
            Place::Sender => &self.guests[0],
            Place::Receiver => &self.guests[1],
        }
    }

    /// Sets `net.ipv4.tcp_ecn` for new connections.
    pub fn set_ecn(&self, place: Place, on: bool) -> Result<()> {
        self.guest(place).set(&[("ipv4/tcp_ecn", if on { "1" } else { "0" })])
    }

    /// Starts a proxy between sender and receiver; the sender has to connect to the proxy.
    pub fn proxy(&self, congestion_control: &str, to: SocketAddr) -> Result<Proxy> {
        set_proxy(&self.hypervisor, self.sack, congestion_control)?;
        Proxy::on_the_way(
            &self.hypervisor,
            SocketAddr::new(HYPERVISOR_ADDRESS.into(), to.port()),
            to,
        )
    }

    /// Limits the rate of the sender's host until the value is dropped.
    pub fn limit(&self, rate_bps: u64) -> Result<Limited<'_>> {
        let own = Limits { rate_bps: Some(rate_bps), ..Limits::default() };
        self.hypervisor.inside(|| limits::set_on_uplink(&own, UPLINK))?;
        Ok(Limited(self))
    }
}

/// The device from the sender's host to the receiver.
const UPLINK: &str = Place::port(Place::Receiver);

pub struct Limited<'a>(&'a Wire);

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        // A failure is reported by the next half, which cannot add its own qdisc.
        let remove = || tc_batch("the hypervisor", &format!("qdisc del dev {UPLINK} root\n"));
        let _ = self.0.hypervisor.inside(remove);
    }
}
