//! Names of ports. Devices of several network namespaces may have the same name.

use std::collections::HashMap;
use std::sync::Arc;

use vcc_port::FlowId;

/// A connection among those of all ports; the port's part is from [`keys`].
pub type FlowKey = (Arc<str>, FlowId);

/// Each name, with the number of ports of that name before it.
pub fn numbered<'a>(devices: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let number = |device| {
        let count = counts.entry(device).or_default();
        *count += 1;
        (device, *count - 1)
    };
    devices.into_iter().map(number).collect()
}

/// A key for each port: its name, with a number from the second port of that name on.
pub fn keys<'a>(devices: impl IntoIterator<Item = &'a str>) -> Vec<Arc<str>> {
    let key = |(device, number): (&str, usize)| match number {
        0 => device.into(),
        earlier => format!("{device} {}", earlier + 1).into(),
    };
    numbered(devices).into_iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_one_name_have_different_keys() {
        let keys = keys(["veth0", "tap7", "veth0", "veth0"]);
        let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
        assert_eq!(keys, ["veth0", "tap7", "veth0 2", "veth0 3"]);
    }
}
