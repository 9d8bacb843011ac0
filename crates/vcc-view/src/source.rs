//! Where ports are: in the kernel, or in a process of `vcc domain`.

use vcc_domain::PoolUse;
use vcc_engine::Params;
use vcc_port::{Error, Flow, FlowId, Port, RunTimeByDirection, SharedPolicy};

use crate::domain::{DomainPort, serves_tap};
use crate::names;
use crate::recording::{Recording, Stream};
use crate::rule::{RuleView, RulesInForce, add_rules_of_domain};

pub enum Source {
    Kernel(Box<Port>),
    Domain(Box<DomainPort>),
}

impl From<Port> for Source {
    fn from(port: Port) -> Self {
        Self::Kernel(Box::new(port))
    }
}

impl From<DomainPort> for Source {
    fn from(port: DomainPort) -> Self {
        Self::Domain(Box::new(port))
    }
}

impl Source {
    /// All ports of this host.
    pub fn list() -> Result<Vec<Self>, Error> {
        let kernel = Port::list()?.into_iter().map(Self::from);
        let mut all: Vec<_> =
            kernel.chain(DomainPort::list().into_iter().map(Self::from)).collect();
        all.sort_by(|one, other| names::compare(one.device(), other.device()));
        Ok(all)
    }

    /// The ports of these devices; without any, all.
    pub fn open_all(devices: &[String]) -> Result<Vec<Self>, Error> {
        if devices.is_empty() {
            return Self::list();
        }
        let mut ports =
            devices.iter().map(|device| Self::open(device)).collect::<Result<Vec<_>, _>>()?;
        Port::show_once(ports.iter_mut().filter_map(Self::kernel_mut));
        Ok(ports)
    }

    fn open(device: &str) -> Result<Self, Error> {
        match DomainPort::find(device) {
            Some(port) => Ok(port.into()),
            None => Port::open(device).map(Self::from),
        }
    }

    pub fn device(&self) -> &str {
        match self {
            Self::Kernel(port) => port.device(),
            Self::Domain(port) => &port.name,
        }
    }

    /// Why its process cannot be read.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Kernel(_) => None,
            Self::Domain(port) => {
                let failure = port.status.as_ref().err()?;
                Some(format!("{}: {failure}", port.name))
            }
        }
    }

    /// Of all its flows, unless a policy rules them.
    pub fn params(&self) -> Result<Params, Error> {
        match self {
            Self::Kernel(port) => port.params(),
            Self::Domain(port) => {
                Ok(port.status.as_ref().map_or_else(|_| Params::default(), |status| status.params))
            }
        }
    }

    /// Its index among the ports of the policy in the kernel; None if it is under none.
    pub fn index(&self) -> Result<Option<u32>, Error> {
        match self {
            Self::Kernel(port) => port.index(),
            Self::Domain(_) => Ok(None),
        }
    }

    /// Is it under the host's policy?
    pub(crate) fn is_ruled(&self) -> Result<bool, Error> {
        match self {
            Self::Kernel(port) => Ok(port.index()?.is_some()),
            Self::Domain(port) => Ok(port.status.as_ref().is_ok_and(|status| status.epoch != 0)),
        }
    }

    /// The socket of the guest's card, which a policy names; empty in front of a device, and None of a
    /// port in the kernel.
    pub fn socket(&self) -> Option<&str> {
        match self {
            Self::Kernel(_) => None,
            Self::Domain(port) => port.status.as_ref().ok().map(|status| &*status.socket),
        }
    }

    /// Adds the rules that a port has by itself to those of the kernel.
    pub fn add_rules(&self, views: &mut Vec<RuleView>) {
        let Self::Domain(port) = self else { return };
        if let Ok(status) = &port.status {
            add_rules_of_domain(&port.name, status, views);
        }
    }

    /// The pools that a port has by itself.
    pub fn own_pools(&self) -> &[PoolUse] {
        match self {
            Self::Kernel(_) => &[],
            Self::Domain(port) => port.status.as_ref().map_or(&[], |status| &status.pools),
        }
    }

    /// The rules of its flows; none if no policy rules them.
    pub fn rules(&self) -> Result<RulesInForce, Error> {
        match self {
            Self::Kernel(_) if !self.is_ruled()? => Ok(RulesInForce::default()),
            Self::Kernel(_) => RulesInForce::read(SharedPolicy::find()?.as_ref()),
            Self::Domain(port) => Ok(port.rules().unwrap_or_default()),
        }
    }

    /// A process of `vcc domain` is as of the time when it was read: reads it again.
    pub fn read_again(&mut self) -> Result<(), Error> {
        match self {
            Self::Kernel(_) => Ok(()),
            Self::Domain(port) => port.read_again(),
        }
    }

    /// Is it there still?
    pub fn is_attached(&self) -> Result<bool, Error> {
        match self {
            Self::Kernel(port) => port.is_attached(),
            Self::Domain(port) => Ok(serves_tap(&port.name)),
        }
    }

    /// A flow as of now; None if the port does not know it.
    pub fn flow(&self, id: &FlowId) -> Result<Option<Flow>, Error> {
        match self {
            Self::Kernel(port) => port.flow(id),
            Self::Domain(port) => port.flow(id),
        }
    }

    /// Records each ACK of one connection, or of all.
    pub fn record(&self, flow: Option<FlowId>) -> Result<Recording, Error> {
        match self {
            Self::Kernel(port) => Ok(Recording::Kernel(Box::new(port.trace(flow)?))),
            Self::Domain(port) => Stream::begin(&port.name, flow).map(Recording::Domain),
        }
    }

    /// The flows of each of these ports, of which those in the kernel are read at once. None of a
    /// process of `vcc domain`, which has them itself.
    pub fn kernel_flows(ports: &[Self]) -> Result<Vec<Vec<Flow>>, Error> {
        let in_kernel: Vec<&Port> = ports.iter().filter_map(Self::kernel).collect();
        let mut read = Port::flows_of_all(&in_kernel)?.into_iter();
        let of = |port: &Self| port.kernel().and_then(|_| read.next()).unwrap_or_default();
        Ok(ports.iter().map(of).collect())
    }

    /// Visits the flows of these ports that are in the kernel, with the port's place among them.
    pub(crate) fn each_kernel_flow(
        ports: &[Self],
        mut visit: impl FnMut(usize, &Flow),
    ) -> Result<(), Error> {
        let ports = ports.iter().enumerate();
        let in_kernel = ports.filter_map(|(place, port)| Some((place, port.kernel()?)));
        let (places, ports): (Vec<usize>, Vec<&Port>) = in_kernel.unzip();
        Port::each_flow_of(&ports, |at, flow| visit(places[at], flow))
    }

    /// The run time of its programs, which each device of a guest has of its own; None if the kernel has
    /// counted none, and of a process of `vcc domain`.
    pub fn run_time(&self) -> Option<RunTimeByDirection> {
        let time = self.kernel()?.run_time_by_direction().ok()?;
        Some(time).filter(|time| time.from_guest.runs + time.to_guest.runs > 0)
    }

    /// The kernel's memory of the tables of all ports; None if none of these is in the kernel, or it cannot be
    /// read.
    pub fn tables_bytes(ports: &[Self]) -> Option<u64> {
        ports.iter().find_map(Self::kernel)?.tables_bytes().ok()
    }

    /// Whether the port's counters are shown at another device of its guest.
    pub fn is_shown_elsewhere(&self) -> bool {
        self.kernel().is_some_and(|port| port.shown_at().is_some())
    }

    fn kernel_mut(&mut self) -> Option<&mut Port> {
        match self {
            Self::Kernel(port) => Some(port),
            Self::Domain(_) => None,
        }
    }

    fn kernel(&self) -> Option<&Port> {
        match self {
            Self::Kernel(port) => Some(port),
            Self::Domain(_) => None,
        }
    }

    pub fn flows(&self) -> Result<Vec<Flow>, Error> {
        match self {
            Self::Kernel(port) => port.flows(),
            Self::Domain(port) => Ok(port.flows()),
        }
    }
}
