//! Segmentation offloads, by the ioctls of ethtool.

use super::device::{Devices, EthtoolValue};
use std::io;
use vcc_traffic::{Doing, Result};

struct Offload {
    name: &'static str,
    get: u32,
    set: u32,
}

/// ETHTOOL_GTSO, _STSO, _GGSO and _SGSO.
const OFFLOADS: [Offload; 2] =
    [Offload { name: "TSO", get: 0x1e, set: 0x1f }, Offload { name: "GSO", get: 0x23, set: 0x24 }];

/// Turns offloads off, so that the guest hands single segments to its device.
pub fn turn_off(devices: &Devices, device: &str) -> Result<()> {
    OFFLOADS.iter().try_for_each(|offload| {
        // A device without the offload would refuse.
        if !offload.is_on(devices, device)? {
            return Ok(());
        }
        devices.ask_driver(device, &mut EthtoolValue { command: offload.set, data: 0 })?;
        let refused = if offload.is_on(devices, device)? {
            Err(io::Error::other("the device does not turn it off"))
        } else {
            Ok(())
        };
        refused.doing(|| format!("turn {} of {device} off", offload.name))
    })
}

impl Offload {
    fn is_on(&self, devices: &Devices, device: &str) -> Result<bool> {
        let mut value = EthtoolValue { command: self.get, data: 0 };
        devices.ask_driver(device, &mut value)?;
        Ok(value.data != 0)
    }
}
