//! The guest's port, at its tap or in `vcc domain`, which reports what the guest's connections wait for,
//! and the guest's CPU.

use super::card::Card;
use super::network::{Network, TAP};
use crate::base::error::{Doing, Error, Result};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vcc_domain::{Ask, Status};
use vcc_engine::{DelayedBy, FlowState, Mode, Params};
use vcc_port::{AttachOptions, Port};
use vcc_vcpu::{Machine, Machines, Reading, Shares};

/// `vcc domain` answers sooner.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection with fewer waits may be too short to show what it waits for.
const WAITS_MIN: u16 = 20;

/// What a port reported about a connection.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    pub by: Option<DelayedBy>,
    pub guest_us: Option<u32>,
    pub fabric_us: Option<u32>,
}

enum Place {
    /// It computes, and changes nothing.
    Tap(Port),
    /// The socket on which the process reports its status.
    Domain(PathBuf),
}

pub struct Judge {
    place: Place,
    /// Of each connection, by its ends, the last.
    verdicts: BTreeMap<(SocketAddr, SocketAddr), Verdict>,
}

impl Judge {
    pub fn attach_to(network: &Network, card: &Card) -> Result<Self> {
        let place = match card.status_socket() {
            Some(socket) => Place::Domain(socket),
            None => Place::Tap(Self::attach(network)?),
        };
        Ok(Self { place, verdicts: BTreeMap::new() })
    }

    fn attach(network: &Network) -> Result<Port> {
        let params = Params::with(|params| {
            params.mode = Mode::Shadow.number();
        });
        network
            .host
            .inside(|| Port::attach(TAP, &AttachOptions::from_params(params)).map_err(failed))
    }

    /// After each transfer: the port forgets a connection some seconds after its end.
    pub fn judge_flows(&mut self) -> Result<()> {
        match &self.place {
            Place::Tap(port) => {
                let flows = port.flows().map_err(failed)?;
                flows.iter().for_each(|flow| self.judge((flow.guest, flow.peer), &flow.state));
            }
            Place::Domain(socket) => {
                let flows = status(socket)?.flows;
                flows.iter().for_each(|flow| {
                    self.judge((flow.key.guest(), flow.key.peer()), &flow.state);
                });
            }
        }
        Ok(())
    }

    fn judge(&mut self, ends: (SocketAddr, SocketAddr), state: &FlowState) {
        if state.waits > WAITS_MIN {
            let verdict = Verdict {
                by: state.delayed_by(),
                guest_us: state.guest_delay_us(),
                fabric_us: state.fabric_delay_us(),
            };
            self.verdicts.insert(ends, verdict);
        }
    }

    /// Those of this series of transfers.
    pub fn take(&mut self) -> Vec<Verdict> {
        std::mem::take(&mut self.verdicts).into_values().collect()
    }

    pub fn watch_cpu(&self) -> Result<CpuWatch> {
        let watch = || {
            let found = Machines::find();
            let machine = match &self.place {
                Place::Tap(port) => {
                    let machine =
                        found.of_tap(TAP, port.netns_inode()).map_err(io::Error::other)?;
                    machine.ok_or(io::ErrorKind::NotFound)?
                }
                Place::Domain(socket) => {
                    let process = ask(socket)?.front_end;
                    found.of_process(process).map_err(io::Error::other)?
                }
            };
            let machine = machine.clone();
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

fn status(socket: &Path) -> Result<Status> {
    ask(socket).doing(|| "ask `vcc domain` for its connections".into())
}

fn ask(socket: &Path) -> io::Result<Status> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&Ask::Status(None).to_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Status::from_bytes(&bytes).map_err(|_| io::Error::other("it is of another version of vcc"))
}

fn doing_cpu() -> String {
    "look at the guest's CPU".into()
}

fn failed(error: vcc_port::Error) -> Error {
    Error::Attach { host: "the guest's tap".into(), problem: error.to_string() }
}
