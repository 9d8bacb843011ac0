//! Hosts: a guest in a network namespace, its device, and the host side of that device.
//!
//! The guest's `eth0` is one end of a veth pair, like on a KVM or container host. The other end,
//! the **port**, lies with a bridge and an uplink in a namespace that stands for all hypervisors;
//! vcc attaches to the port. With [`HostForm::Tap`] the guest's device is the uplink itself.

pub mod limits;
mod netns;
mod parameters;
pub mod program;
mod proxy;
mod tap;

pub use netns::Netns;
pub use parameters::{quiet_ipv6, set_proxy};
pub use program::{ip_batch, tc_batch};
pub use proxy::Proxy;
pub use tap::Tap;

use crate::base::error::Result;
use crate::scenario::{Family, HostForm, HostSpec, address, prefix_bits};
use program::ethtool;
use proxy::Outside;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use vcc_fabric::{HostId, mac_of};

const GUEST_DEVICE: &str = "eth0";
/// Room for the frames of a whole window while the emulator sleeps; the default is 500.
const UPLINK_QUEUE_FRAMES: u32 = 5000;

pub struct Hosts {
    form: HostForm,
    family: Family,
    hypervisor: Netns,
    guests: Vec<Netns>,
    taps: Vec<Tap>,
    drops_at_start: u64,
}

impl Hosts {
    pub fn create(
        form: HostForm,
        family: Family,
        mtu_bytes: u16,
        specs: &[HostSpec],
    ) -> Result<Self> {
        let hypervisor = Netns::create()?;
        quiet_ipv6(&hypervisor)?;
        let guests: Vec<Netns> = specs.iter().map(|_| Netns::create()).collect::<Result<_>>()?;
        for (guest, spec) in guests.iter().zip(specs) {
            parameters::set_guest(guest, family, spec)?;
        }
        let taps = match form {
            HostForm::Veth => wire_veths(&hypervisor, &guests, specs, mtu_bytes)?,
            HostForm::Tap => guests
                .iter()
                .map(|guest| guest.inside(|| Tap::create(GUEST_DEVICE, mtu_bytes)))
                .collect::<Result<_>>()?,
        };
        for (host, (guest, spec)) in guests.iter().zip(specs).enumerate() {
            guest.inside(|| start_guest(host, family, mtu_bytes, spec))?;
            let route = own_route(family);
            guest.inside(|| limits::set_in_guest(&spec.limits, &host_name(host), &route))?;
            match form {
                HostForm::Veth => {
                    hypervisor
                        .inside(|| limits::set_on_uplink(&spec.limits, &uplink_name(host)))?;
                }
                HostForm::Tap => {
                    guest.inside(|| limits::set_on_uplink(&spec.limits, GUEST_DEVICE))?
                }
            }
        }
        for (host, spec) in specs.iter().enumerate() {
            let Some(congestion_control) = &spec.proxy else { continue };
            set_proxy(&hypervisor, spec.sack, congestion_control)?;
            let commands = proxied(host, address(family, host), spec);
            hypervisor.inside(|| ip_batch("the hypervisor", &commands))?;
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

    /// Starts the proxy in the way of a host, which connects to `to` in its stead. The host must
    /// have been made with one.
    pub fn start_proxy(&self, host: HostId, to: SocketAddr) -> Result<Proxy> {
        let outside = Outside { address: self.address(host), device: &uplink_name(host) };
        Proxy::start(&self.hypervisor, proxy::listens_at(host), Some(&outside), to)
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

/// The route that a guest's kernel makes of its address.
fn own_route(family: Family) -> String {
    match family {
        Family::Ipv4 => format!("10.77.0.0/16 dev {GUEST_DEVICE} scope link"),
        Family::Ipv6 => format!("fd77::/64 dev {GUEST_DEVICE} metric 256"),
    }
}

fn host_name(host: HostId) -> String {
    format!("host {}", host + 1)
}

fn uplink_name(host: HostId) -> String {
    format!("up{host}")
}

fn port_name(host: HostId) -> String {
    format!("port{host}")
}

/// Between guest and emulator: veth pair, bridge, uplink, all in the hypervisor's namespace.
fn wire_veths(
    hypervisor: &Netns,
    guests: &[Netns],
    specs: &[HostSpec],
    mtu_bytes: u16,
) -> Result<Vec<Tap>> {
    let mut commands = String::new();
    for (host, (guest, spec)) in guests.iter().zip(specs).enumerate() {
        let (port, uplink) = (port_name(host), uplink_name(host));
        let (mac, namespace) = (mac_text(host), guest.path());
        let _ = writeln!(
            commands,
            "link add {port} type veth peer name {GUEST_DEVICE} address {mac} netns {namespace}\n\
             link set {port} mtu {mtu_bytes}\n\
             link set {uplink} mtu {mtu_bytes} txqueuelen {UPLINK_QUEUE_FRAMES}"
        );
        // Port and uplink of a proxied guest are not bridged.
        if spec.proxy.is_some() {
            continue;
        }
        let _ = writeln!(
            commands,
            "link add bridge{host} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set {uplink} master bridge{host} up\n\
             link set {port} master bridge{host} up\n\
             link set bridge{host} up"
        );
    }
    hypervisor.inside(|| {
        let taps = (0..guests.len()).map(|host| Tap::create(&uplink_name(host), mtu_bytes));
        let taps = taps.collect::<Result<Vec<Tap>>>()?;
        ip_batch("the hypervisor", &commands)?;
        Ok(taps)
    })
}

/// The guest's address and neighbours on its uplink, and a network of the guest's own.
fn proxied(host: HostId, own: IpAddr, spec: &HostSpec) -> String {
    let (port, uplink, mac) = (port_name(host), uplink_name(host), mac_text(host));
    let (inside, bits) = (proxy::proxy_address(host), proxy::PREFIX_BITS);
    let mut commands = format!(
        "link set {uplink} address {mac} up\n\
         addr add {own}/16 dev {uplink}\n\
         addr add {inside}/{bits} dev {port}\n\
         link set {port} up\n"
    );
    for &peer in &spec.peers {
        let (to, mac) = (address(Family::Ipv4, peer), mac_text(peer));
        let _ = writeln!(commands, "neigh add {to} lladdr {mac} dev {uplink} nud permanent");
    }
    commands
}

/// Addresses, neighbours and offloads; runs inside the guest.
fn start_guest(host: HostId, family: Family, mtu_bytes: u16, spec: &HostSpec) -> Result<()> {
    let (mac, own) = (mac_text(host), address(family, host));
    let options = if family == Family::Ipv6 { "nodad" } else { "" };
    let length = prefix_bits(family);
    let mut commands = format!(
        "link set lo up\n\
         link set {GUEST_DEVICE} address {mac} mtu {mtu_bytes} txqueuelen {UPLINK_QUEUE_FRAMES}\n\
         addr add {own}/{length} dev {GUEST_DEVICE} {options}\n\
         link set {GUEST_DEVICE} up\n"
    );
    for &peer in &spec.peers {
        let (to, mac) = (address(family, peer), mac_text(peer));
        let _ = writeln!(commands, "neigh add {to} lladdr {mac} dev {GUEST_DEVICE} nud permanent");
    }
    if spec.proxy.is_some() {
        let (own, bits) = (proxy::guest_address(host), proxy::PREFIX_BITS);
        let _ = writeln!(commands, "addr add {own}/{bits} dev {GUEST_DEVICE}");
    }
    let place = host_name(host);
    ip_batch(&place, &commands)?;
    if spec.tso {
        return Ok(());
    }
    ethtool(&place, &["-K", GUEST_DEVICE, "tso", "off", "gso", "off"])
}

fn mac_text(host: HostId) -> String {
    mac_of(host).map(|byte| format!("{byte:02x}")).join(":")
}
