//! Overlays of the guests' own: their connections are inside a tunnel between them.

use vcc_testing::{OpenVSwitch, ip};

/// The device that the guest's connections use.
const INNER: &str = "inner";

#[derive(Clone, Copy, Debug)]
pub enum Overlay {
    /// By the guest's kernel, over either family, with or without checksums of UDP.
    Vxlan { ipv6: bool, checksum: bool },
    /// By Open vSwitch in user space, of this type: it encapsulates and decapsulates, with ECN.
    Switch(&'static str),
}

impl Overlay {
    pub const WITH_CHECKSUMS: [Self; 2] = Self::both(true);
    pub const WITHOUT_CHECKSUMS: [Self; 2] = Self::both(false);

    const fn both(checksum: bool) -> [Self; 2] {
        [Self::Vxlan { ipv6: false, checksum }, Self::Vxlan { ipv6: true, checksum }]
    }

    /// In the namespace of the guest: its device becomes that of the tunnel. Returns the one inside.
    pub fn create(self, device: &str, host: u8) -> (&'static str, Option<OpenVSwitch>) {
        match self {
            Self::Vxlan { ipv6, checksum } => vxlan(device, host, ipv6, checksum),
            Self::Switch(kind) => return (INNER, Some(switch(device, host, kind))),
        }
        (INNER, None)
    }
}

fn end(host: u8, ipv6: bool) -> String {
    if ipv6 { format!("fd99::{host}") } else { format!("172.16.0.{host}") }
}

fn vxlan(device: &str, host: u8, ipv6: bool, checksum: bool) {
    let prefix = if ipv6 { "64 nodad" } else { "24" };
    ip(&format!("address add {}/{prefix} dev {device}", end(host, ipv6)));
    ip(&format!("link set {device} up"));
    let (local, remote) = (end(host, ipv6), end(3 - host, ipv6));
    let checksum = match (ipv6, checksum) {
        (false, true) => "udpcsum",
        (false, false) => "noudpcsum",
        (true, true) => "noudp6zerocsumtx noudp6zerocsumrx",
        (true, false) => "udp6zerocsumtx udp6zerocsumrx",
    };
    ip(&format!(
        "link add {INNER} type vxlan id 5 dstport 4789 local {local} remote {remote} dev {device} \
         {checksum}"
    ));
}

/// The switch has the guest's device, and the tunnel ends at a bridge of its own.
fn switch(device: &str, host: u8, kind: &str) -> OpenVSwitch {
    let switch = OpenVSwitch::start().expect("it is installed");
    ip(&format!("link set {device} up"));
    switch.vsctl("add-br phy -- set bridge phy datapath_type=netdev");
    switch.vsctl(&format!("add-port phy {device}"));
    ip(&format!("address add {}/24 dev phy", end(host, false)));
    ip("link set phy up");
    switch.vsctl(&format!("add-br {INNER} -- set bridge {INNER} datapath_type=netdev"));
    switch.vsctl(&format!(
        "add-port {INNER} tunnel -- set interface tunnel type={kind} \
         options:remote_ip={} options:key=5 options:csum=true",
        end(3 - host, false)
    ));
    ip(&format!("link set {INNER} mtu 1400"));
    switch
}
