//! Whether the guests' virtual CPUs run, where the host sees them.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use vcc_vcpu::{Error, Machine, Machines, Reading, Shares};

use crate::source::Source;
use crate::watch::Watch;

/// A guest's virtual CPU: of several, the one that was runnable longest.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestCpu {
    /// The name of the virtual machine, if it has one.
    pub machine: Option<Arc<str>>,
    pub shares: Shares,
}

impl fmt::Display for GuestCpu {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let Self { machine, shares: Shares { waiting, running, .. } } = self;
        let whose =
            machine.as_ref().map_or("its CPU".to_owned(), |name| format!("the CPU of {name}"));
        let [waiting, running] = [waiting, running].map(|share| share * 100.0);
        write!(to, "{whose} waits for {waiting:.0} % of the time and runs for {running:.0} %")
    }
}

/// Watches the CPUs of the guests at some ports from now on.
pub struct CpuWatch {
    /// Of each port.
    begun: Vec<Option<(Machine, Reading)>>,
    problems: Vec<String>,
}

impl CpuWatch {
    pub fn begin<'a>(ports: impl IntoIterator<Item = &'a Source>) -> Self {
        let mut ports = ports.into_iter().peekable();
        let machines = ports.peek().map(|_| Machines::find());
        let mut watch = Self { begun: Vec::new(), problems: Vec::new() };
        for port in ports {
            let found = machines.as_ref().and_then(|machines| machine(port, machines).transpose());
            let begun = found.map(|machine| {
                let machine = machine?;
                Ok((machine.clone(), machine.read()?))
            });
            let begun = begun.transpose().unwrap_or_else(|error: Error| {
                watch.complain(&error);
                None
            });
            watch.begun.push(begun);
        }
        watch
    }

    fn complain(&mut self, error: &Error) {
        let problem = format!("cannot read whether guests wait for a CPU: {error}");
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Is there any CPU that can be seen?
    pub fn sees_any(&self) -> bool {
        self.begun.iter().any(Option::is_some)
    }

    /// Why CPUs that may be there cannot be seen, each reason once.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Since it began, of each port; None where no CPU can be seen, or its machine has ended.
    pub fn end(&self) -> Vec<Option<GuestCpu>> {
        let shares = |begun: &Option<(Machine, Reading)>| {
            let (machine, before) = begun.as_ref()?;
            let shares = machine.read().ok()?.since(before)?;
            Some(GuestCpu { machine: machine.guest().cloned(), shares })
        };
        self.begun.iter().map(shares).collect()
    }
}

impl Watch for CpuWatch {
    type Seen = GuestCpu;

    fn begin(ports: &[Source]) -> Self {
        Self::begin(ports)
    }

    fn end(&self, _: &[Source]) -> Vec<Option<GuestCpu>> {
        self.end()
    }
}

fn machine<'a>(port: &Source, machines: &'a Machines) -> Result<Option<&'a Machine>, Error> {
    match port {
        Source::Kernel(port) => machines.of_tap(port.device(), port.netns_inode()),
        Source::Domain(port) => match &port.status {
            Ok(status) if status.front_end != 0 => machines.of_process(status.front_end).map(Some),
            _ => Ok(None),
        },
    }
}

/// In JSON, beside other members.
#[derive(Clone, Default, Serialize)]
pub struct CpuShares {
    machine: Option<String>,
    cpu_waiting: Option<f64>,
    cpu_running: Option<f64>,
    cpu_idle: Option<f64>,
}

impl From<Option<&GuestCpu>> for CpuShares {
    fn from(cpu: Option<&GuestCpu>) -> Self {
        let Some(GuestCpu { machine, shares }) = cpu else { return Self::default() };
        Self {
            machine: machine.as_deref().map(str::to_owned),
            cpu_waiting: Some(shares.waiting),
            cpu_running: Some(shares.running),
            cpu_idle: Some(shares.idle),
        }
    }
}
