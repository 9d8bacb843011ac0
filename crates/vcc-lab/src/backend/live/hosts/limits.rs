//! Sets a guest's limits in its namespace and at its port.

use super::program::{ip_batch, tc_batch};
use crate::base::error::Result;
use crate::scenario::Limits;

/// Burst of the token bucket: some full frames. Less than a
/// super-segment is no less: HTB lets one go once it has any credit at all.
const BURST_BYTES: u32 = 16 * 1024;

/// Sets attributes of the guest's only route, that of its address; runs inside the guest.
pub fn set_in_guest(limits: &Limits, place: &str, route: &str) -> Result<()> {
    let cwnd = limits.cwnd_segs.map(|segs| format!(" cwnd lock {segs}"));
    let initial = limits.initial_segs.map(|segs| format!(" initcwnd {segs}"));
    let rto = limits.rto_min_ms.map(|ms| format!(" rto_min {ms}ms"));
    let attributes: String = [cwnd, initial, rto].into_iter().flatten().collect();
    if attributes.is_empty() {
        return Ok(());
    }
    ip_batch(place, &format!("route replace {route}{attributes}\n"))
}

/// A token bucket where the guest's frames leave its host; runs in the uplink's namespace.
pub fn set_on_uplink(limits: &Limits, uplink: &str) -> Result<()> {
    let Some(rate_bps) = limits.rate_bps else { return Ok(()) };
    let commands = format!(
        "qdisc replace dev {uplink} root handle 1: htb default 1\n\
         class add dev {uplink} parent 1: classid 1:1 htb rate {rate_bps}bit \
         burst {BURST_BYTES} cburst {BURST_BYTES} quantum {BURST_BYTES}\n"
    );
    tc_batch("the hypervisor", &commands)
}

#[cfg(test)]
mod tests {
    use super::super::Netns;
    use super::*;
    use std::process::Command;
    use vcc_testing::skip;

    fn output(program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_kernel_has_taken_all_of_them() {
        if let Err(error) = crate::base::system::require_root() {
            return skip(&error.to_string());
        }
        let limits = Limits {
            rate_bps: Some(20_000_000),
            cwnd_segs: Some(12),
            initial_segs: Some(3),
            rto_min_ms: Some(10),
        };
        let namespace = Netns::create().unwrap();
        let (route, class) = namespace
            .inside(|| {
                ip_batch(
                    "here",
                    "link add one type veth peer name two\nlink set one up\nlink set two up\n",
                )?;
                ip_batch("here", "addr add 10.77.0.1/16 dev one\n")?;
                set_in_guest(&limits, "here", "10.77.0.0/16 dev one scope link")?;
                set_on_uplink(&limits, "two")?;
                Ok((output("ip", &["route"]), output("tc", &["class", "show", "dev", "two"])))
            })
            .unwrap();
        assert_eq!(route.lines().count(), 1, "{route}");
        assert!(route.contains("cwnd lock 12") && route.contains("rto_min lock 10ms"), "{route}");
        assert!(route.contains("initcwnd 3"), "{route}");
        assert!(class.contains("rate 20Mbit"), "{class}");
    }
}
