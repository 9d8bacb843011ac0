//! A port at the guest's tap, which says what the guest's connections wait for, and the guest's CPU.

use super::network::{Network, TAP};
use crate::base::error::{Doing, Error, Result};
use std::collections::BTreeMap;
use std::io;
use vcc_engine::{DelayedBy, Mode, Params};
use vcc_port::{AttachOptions, FlowId, Port};
use vcc_vcpu::{Machine, Machines, Reading, Shares};

/// A connection of fewer waits may be too short to tell what it waits for.
const WAITS_MIN: u16 = 20;

/// What a port said of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    pub by: Option<DelayedBy>,
    pub guest_us: Option<u32>,
    pub fabric_us: Option<u32>,
}

/// Computes, and changes nothing.
pub struct Judge {
    port: Port,
    /// Of each connection, the last.
    verdicts: BTreeMap<FlowId, Verdict>,
}

impl Judge {
    pub fn attach(network: &Network) -> Result<Self> {
        let params = Params::with(|params| {
            params.mode = Mode::Shadow.number();
        });
        let port = network.host.inside(|| {
            let attached = Port::attach(TAP, &AttachOptions::of(params));
            attached.map_err(failed)
        })?;
        Ok(Self { port, verdicts: BTreeMap::new() })
    }

    /// After each transfer: the port forgets a connection some seconds after its end.
    pub fn look(&mut self) -> Result<()> {
        for flow in self.port.flows().map_err(failed)? {
            let state = &flow.state;
            if state.waits > WAITS_MIN {
                let verdict = Verdict {
                    by: state.delayed_by(),
                    guest_us: state.guest_delay_us(),
                    fabric_us: state.fabric_delay_us(),
                };
                self.verdicts.insert(flow.id(), verdict);
            }
        }
        Ok(())
    }

    /// Those of this series of transfers.
    pub fn take(&mut self) -> Vec<Verdict> {
        std::mem::take(&mut self.verdicts).into_values().collect()
    }

    pub fn watch_cpu(&self) -> Result<CpuWatch> {
        let watch = || {
            let found = Machines::find();
            let machine = found.of_tap(TAP, self.port.netns_inode()).map_err(io::Error::other)?;
            let machine = machine.ok_or(io::ErrorKind::NotFound)?.clone();
            let before = machine.read().map_err(io::Error::other)?;
            Ok(CpuWatch { machine, before })
        };
        watch().doing(doing_cpu)
    }
}

/// Of the guest's CPU.
pub struct CpuWatch {
    machine: Machine,
    before: Reading,
}

impl CpuWatch {
    pub fn end(&self) -> Result<Shares> {
        let after = self.machine.read().map_err(io::Error::other).doing(doing_cpu)?;
        let shares = after.since(&self.before).ok_or(io::ErrorKind::NotFound.into());
        shares.doing(doing_cpu)
    }
}

fn doing_cpu() -> String {
    "look at the guest's CPU".into()
}

fn failed(error: vcc_port::Error) -> Error {
    Error::Attach { host: "the guest's tap".into(), problem: error.to_string() }
}
