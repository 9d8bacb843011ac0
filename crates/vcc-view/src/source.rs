//! Where ports are: in the kernel, or in a process of `vcc domain`.

use vcc_engine::Params;
use vcc_port::{Error, Flow, Port};

use crate::domain::DomainPort;
use crate::rule::{RuleView, add_rules_of_domain};

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
        Ok(kernel.chain(DomainPort::list().into_iter().map(Self::from)).collect())
    }

    /// The ports of these devices; without any, all.
    pub fn of(devices: &[String]) -> Result<Vec<Self>, Error> {
        if devices.is_empty() {
            return Self::list();
        }
        devices.iter().map(|device| Self::open(device)).collect()
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

    /// Of all its flows, unless a policy rules them.
    pub(crate) fn params(&self) -> Result<Params, Error> {
        match self {
            Self::Kernel(port) => port.params(),
            Self::Domain(port) => {
                Ok(port.status.as_ref().map_or_else(|_| Params::default(), |status| status.params))
            }
        }
    }

    /// Is it under the host's policy?
    pub(crate) fn is_ruled(&self) -> Result<bool, Error> {
        match self {
            Self::Kernel(port) => Ok(port.index()?.is_some()),
            Self::Domain(port) => Ok(port.status.as_ref().is_ok_and(|status| status.epoch != 0)),
        }
    }

    /// The socket of the guest's card, which a policy names; None of a port in the kernel.
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
            add_rules_of_domain(status, views);
        }
    }

    pub fn flows(&self) -> Result<Vec<Flow>, Error> {
        match self {
            Self::Kernel(port) => port.flows(),
            Self::Domain(port) => Ok(port.flows()),
        }
    }
}
