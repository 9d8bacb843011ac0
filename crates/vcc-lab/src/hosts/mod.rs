//! Hosts: a guest in a network namespace, its device, and the host side of that device.
//!
//! As on a KVM or container host, the guest's `eth0` is one end of a veth pair. The other end,
//! the **port**, lies with a bridge and an uplink in a namespace that stands for all hypervisors;
//! vcc attaches to the port. With [`HostForm::Tap`] the guest's device is the uplink itself.

mod netns;
mod program;
mod tap;

pub use netns::Netns;
pub use tap::Tap;

use crate::error::Result;
use crate::fabric::{HostId, mac_of};
use program::{ethtool, ip_batch};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

const GUEST_DEVICE: &str = "eth0";
/// Room for the frames of a whole window while the emulator sleeps; the default is 500.
const UPLINK_QUEUE_FRAMES: u32 = 5000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostForm {
    #[default]
    Veth,
    Tap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    #[default]
    Ipv4,
    Ipv6,
}

/// One host to be made.
#[derive(Debug, Clone)]
pub struct HostSpec {
    pub ecn: bool,
    pub sack: bool,
    /// Whether the guest hands super-segments to its device, as Linux does by default.
    pub tso: bool,
    /// Hosts that it talks to.
    pub peers: Vec<HostId>,
}

pub struct Hosts {
    form: HostForm,
    family: Family,
    hypervisor: Netns,
    guests: Vec<Netns>,
    taps: Vec<Tap>,
    drops_at_start: u64,
}

impl Hosts {
    pub fn create(form: HostForm, family: Family, specs: &[HostSpec]) -> Result<Self> {
        let hypervisor = Netns::create()?;
        hypervisor.set(&existing(QUIET_IPV6))?;
        let guests: Vec<Netns> = specs.iter().map(|_| Netns::create()).collect::<Result<_>>()?;
        for (guest, spec) in guests.iter().zip(specs) {
            set_guest_parameters(guest, family, spec)?;
        }
        let taps = match form {
            HostForm::Veth => wire_veths(&hypervisor, &guests)?,
            HostForm::Tap => guests
                .iter()
                .map(|guest| guest.inside(|| Tap::create(GUEST_DEVICE)))
                .collect::<Result<_>>()?,
        };
        for (host, (guest, spec)) in guests.iter().zip(specs).enumerate() {
            guest.inside(|| start_guest(host, family, spec))?;
        }
        let mut hosts = Self { form, family, hypervisor, guests, taps, drops_at_start: 0 };
        hosts.drops_at_start = hosts.drops_so_far()?;
        Ok(hosts)
    }

    pub fn guest(&self, host: HostId) -> &Netns {
        &self.guests[host]
    }

    pub fn address(&self, host: HostId) -> IpAddr {
        address(self.family, host)
    }

    /// The namespace of the ports, and the port of a host, where it has one.
    pub fn port(&self, host: HostId) -> Option<(&Netns, String)> {
        (self.form == HostForm::Veth).then(|| (&self.hypervisor, port_name(host)))
    }

    pub fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// Frames that devices, not the emulated queues, have lost since the hosts were made.
    pub fn lost_frames(&self) -> Result<u64> {
        Ok(self.drops_so_far()?.saturating_sub(self.drops_at_start))
    }

    fn drops_so_far(&self) -> Result<u64> {
        let mut sum = 0;
        for namespace in self.guests.iter().chain([&self.hypervisor]) {
            sum += namespace.drops()?.iter().map(|(_, drops)| drops).sum::<u64>();
        }
        Ok(sum)
    }
}

fn address(family: Family, host: HostId) -> IpAddr {
    let number = host as u16 + 1;
    match family {
        Family::Ipv4 => {
            let [high, low] = number.to_be_bytes();
            Ipv4Addr::new(10, 77, high, low).into()
        }
        Family::Ipv6 => Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number).into(),
    }
}

fn port_name(host: HostId) -> String {
    format!("port{host}")
}

/// No neighbour discovery, no router solicitation: nothing on the wire but the experiment.
const QUIET_IPV6: &[(&str, &str)] =
    &[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")];
const BARE_IPV6: &[(&str, &str)] = &[
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
];

/// Those that this kernel has: it may be built without IPv6.
fn existing<'a>(parameters: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let exists = |name: &str| Path::new("/proc/sys/net").join(name).exists();
    parameters.iter().copied().filter(|(name, _)| exists(name)).collect()
}

fn set_guest_parameters(guest: &Netns, family: Family, spec: &HostSpec) -> Result<()> {
    let flag = |on: bool| if on { "1" } else { "0" };
    guest.set(&[
        ("ipv4/tcp_ecn", flag(spec.ecn)),
        // RED drops SYNs, which are not ECT; a repeated SYN would then give ECN up.
        ("ipv4/tcp_ecn_fallback", "0"),
        ("ipv4/tcp_sack", flag(spec.sack)),
        ("ipv4/tcp_no_metrics_save", "1"),
    ])?;
    match family {
        Family::Ipv4 => guest.set(&existing(QUIET_IPV6)),
        Family::Ipv6 => guest.set(BARE_IPV6),
    }
}

/// Between guest and emulator: veth pair, bridge, uplink, all in the hypervisor's namespace.
fn wire_veths(hypervisor: &Netns, guests: &[Netns]) -> Result<Vec<Tap>> {
    let mut commands = String::new();
    for (host, guest) in guests.iter().enumerate() {
        let (port, mac, namespace) = (port_name(host), mac_text(host), guest.path());
        let _ = writeln!(
            commands,
            "link add {port} type veth peer name {GUEST_DEVICE} address {mac} netns {namespace}\n\
             link add bridge{host} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set up{host} txqueuelen {UPLINK_QUEUE_FRAMES}\n\
             link set up{host} master bridge{host} up\n\
             link set {port} master bridge{host} up\n\
             link set bridge{host} up"
        );
    }
    hypervisor.inside(|| {
        let taps = (0..guests.len()).map(|host| Tap::create(&format!("up{host}")));
        let taps = taps.collect::<Result<Vec<Tap>>>()?;
        ip_batch("the hypervisor", &commands)?;
        Ok(taps)
    })
}

/// Addresses, neighbours and offloads; runs inside the guest.
fn start_guest(host: HostId, family: Family, spec: &HostSpec) -> Result<()> {
    let (mac, own) = (mac_text(host), address(family, host));
    let (length, options) = match family {
        Family::Ipv4 => (16, ""),
        Family::Ipv6 => (64, "nodad"),
    };
    let mut commands = format!(
        "link set lo up\n\
         link set {GUEST_DEVICE} address {mac} txqueuelen {UPLINK_QUEUE_FRAMES}\n\
         addr add {own}/{length} dev {GUEST_DEVICE} {options}\n\
         link set {GUEST_DEVICE} up\n"
    );
    for &peer in &spec.peers {
        let (to, mac) = (address(family, peer), mac_text(peer));
        let _ = writeln!(commands, "neigh add {to} lladdr {mac} dev {GUEST_DEVICE} nud permanent");
    }
    let place = format!("host {}", host + 1);
    ip_batch(&place, &commands)?;
    if spec.tso {
        return Ok(());
    }
    ethtool(&place, &["-K", GUEST_DEVICE, "tso", "off", "gso", "off"])
}

fn mac_text(host: HostId) -> String {
    mac_of(host).map(|byte| format!("{byte:02x}")).join(":")
}
