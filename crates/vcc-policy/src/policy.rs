//! A whole policy, checked.

use std::fmt;

use vcc_engine::{Mode, Params};

use crate::affiliation::Affiliation;
use crate::connection::Connection;
use crate::pool::Pool;
use crate::port::PortSelector;
use crate::rule::Rule;
use crate::treatment::Treatment;

/// There is at least one rule: the default, which is the last and matches everything.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) ports: Vec<PortSelector>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) has_default: bool,
}

/// The number of rules, as an operator counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// Without the default.
    pub rules: usize,
    /// Whether the file has one.
    pub has_default: bool,
}

impl fmt::Display for RuleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.rules == 1 { "" } else { "s" };
        let default = if self.has_default { " and a default" } else { ", no default" };
        write!(f, "{} rule{plural}{default}", self.rules)
    }
}

impl Policy {
    /// In the order of the file; the first match applies.
    pub fn ports(&self) -> &[PortSelector] {
        &self.ports
    }

    /// The first that matches, if it is for ports in the kernel. A device that none matches is not a
    /// port.
    pub fn port_of(&self, device: &str) -> Option<&PortSelector> {
        self.first_of(device).filter(|port| port.buffer().is_none())
    }

    /// The first that matches, if it is for `vcc domain --device`.
    pub fn port_of_detour(&self, device: &str) -> Option<&PortSelector> {
        self.first_of(device).filter(|port| port.buffer().is_some())
    }

    fn first_of(&self, device: &str) -> Option<&PortSelector> {
        self.ports.iter().find(|port| port.matches_device(device))
    }

    /// Of a process of `vcc domain`: by the path of its socket, or without one by its device.
    pub fn port_of_domain(&self, socket: &str, device: &str) -> Option<&PortSelector> {
        if socket.is_empty() { self.port_of_detour(device) } else { self.port_of_socket(socket) }
    }

    /// The first that matches the path of a socket of `vcc domain`.
    pub fn port_of_socket(&self, path: &str) -> Option<&PortSelector> {
        self.ports.iter().find(|port| port.matches_socket(path))
    }

    /// Whether any connection at a port may need emitted segments.
    pub fn emits_for(&self, port: Affiliation<'_>) -> bool {
        self.enforces_for(port, |params| params.0.emit != 0)
    }

    /// Whether any connection at a port may be policed.
    pub fn polices_for(&self, port: Affiliation<'_>) -> bool {
        self.enforces_for(port, |params| params.0.police != 0)
    }

    fn enforces_for(&self, port: Affiliation<'_>, what: impl Fn(&Params) -> bool) -> bool {
        let enforces =
            |rule: &Rule| what(&rule.treatment.params) && rule.treatment.mode() == Mode::Enforce;
        self.rules.iter().any(|rule| enforces(rule) && rule.conditions.admits_port_of(port))
    }

    /// In the order of the file; the first match applies. The default is the last.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether the file says how connections are treated that no rule matches.
    pub fn has_default(&self) -> bool {
        self.has_default
    }

    /// Of connections that no rule matches, if the file says it.
    pub fn default_treatment(&self) -> Option<&Treatment> {
        self.has_default.then(|| &self.rules[self.last()].treatment)
    }

    pub fn count(&self) -> RuleCount {
        RuleCount { rules: self.last(), has_default: self.has_default }
    }

    /// Whether both treat each connection at ports of the same affiliation alike.
    pub fn has_rules_of(&self, other: &Self) -> bool {
        self.rules == other.rules
            && self.pools == other.pools
            && self.has_default == other.has_default
    }

    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The index of the first rule that matches, found one after the other: the reference for
    /// [`crate::Compiled::judge`].
    pub fn judge(&self, c: &Connection) -> usize {
        self.rules.iter().position(|rule| rule.conditions.admit(c)).unwrap_or(self.last())
    }

    pub(crate) fn last(&self) -> usize {
        self.rules.len() - 1
    }
}
