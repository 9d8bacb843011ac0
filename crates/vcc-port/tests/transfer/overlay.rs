//! Overlays of the guests' own: their connections are inside a tunnel between them.

use vcc_testing::ip;

/// The device that the guest's connections use.
const INNER: &str = "inner";

/// VXLAN by the guest's kernel.
#[derive(Clone, Copy, Debug)]
pub struct Overlay {
    ipv6: bool,
    checksum: bool,
}

impl Overlay {
    /// Of UDP, over both families.
    pub const WITH_CHECKSUMS: [Self; 2] = Self::both(true);
    pub const WITHOUT_CHECKSUMS: [Self; 2] = Self::both(false);

    const fn both(checksum: bool) -> [Self; 2] {
        [Self { ipv6: false, checksum }, Self { ipv6: true, checksum }]
    }

    /// In the namespace of the guest: its device becomes that of the tunnel. Returns the one inside.
    pub fn create(&self, device: &str, host: u8) -> &'static str {
        let end = |host: u8| match self.ipv6 {
            true => format!("fd99::{host}"),
            false => format!("172.16.0.{host}"),
        };
        let prefix = if self.ipv6 { "64 nodad" } else { "24" };
        ip(&format!("address add {}/{prefix} dev {device}", end(host)));
        ip(&format!("link set {device} up"));
        let (local, remote) = (end(host), end(3 - host));
        let checksum = match (self.ipv6, self.checksum) {
            (false, true) => "udpcsum",
            (false, false) => "noudpcsum",
            (true, true) => "noudp6zerocsumtx noudp6zerocsumrx",
            (true, false) => "udp6zerocsumtx udp6zerocsumrx",
        };
        ip(&format!(
            "link add {INNER} type vxlan id 5 dstport 4789 local {local} remote {remote} \
             dev {device} {checksum}"
        ));
        INNER
    }
}
