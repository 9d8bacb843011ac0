//! Programs on a device that parse each segment and leave it alone: the cost of having any program
//! at all.

use libbpf_rs::Link;
use vcc_policy::Order;

use crate::device::Device;
use crate::{AttachOptions, Datapath, Error, Program, Result, tcx};

/// Attached until it is dropped.
pub struct Yardstick {
    _links: [Link; 2],
}

impl Yardstick {
    /// Attaches to a device of the calling thread's network namespace, in both directions.
    pub fn attach(device: &str) -> Result<Self> {
        let device = Device::named(device)?;
        let datapath = Datapath::load_with_yardsticks(None, &AttachOptions::default())?;
        let attach = |program| {
            tcx::attach(&datapath.program(program)?, device.ifindex, Order::Last, 0)
                .map_err(|e| Error::system(format!("attach to `{}`", device.name), e))
        };
        Ok(Self { _links: [attach(Program::ParseFromGuest)?, attach(Program::ParseToGuest)?] })
    }
}
