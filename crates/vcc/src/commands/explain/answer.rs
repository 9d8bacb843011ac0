//! The rule of a connection, by a policy or by the rules in the kernel.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_daemon::ClientError;
use vcc_policy::{Affiliation, Connection, Explanation, Miss, Policy, PortSelector};
use vcc_port::{Judgement, Port, Property, SharedPolicy};

use super::Arguments;
use super::live::Live;
use crate::commands::policy;

pub(super) enum Rules {
    Policy(Policy),
    /// What the daemon left there.
    Kernel(Box<SharedPolicy>),
}

#[derive(PartialEq, Eq)]
pub(super) enum Answer {
    Rule(Explanation),
    /// Why none can be named.
    Unknown(String),
}

impl Rules {
    /// Those of a file; without one, those in force.
    pub(super) fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        match policy::read_or_ask(file) {
            Ok(policy) => Ok(Self::Policy(policy)),
            Err(error) => match error.downcast_ref() {
                Some(ClientError::NoDaemon { .. } | ClientError::Silent { .. }) => {
                    let shared = SharedPolicy::find().ok().flatten();
                    let shared = shared.filter(|it| it.epoch().is_ok_and(|epoch| epoch != 0));
                    let Some(shared) = shared else { return Err(error) };
                    output::complain(
                        "the daemon does not answer: using the rules in the kernel, which do not list their \
                         conditions",
                    );
                    Ok(Self::Kernel(Box::new(shared)))
                }
                _ => Err(error),
            },
        }
    }

    /// For a connection that is not live, at a device or anywhere.
    pub(super) fn of_any(
        &self,
        connection: Connection,
        device: Option<&str>,
    ) -> anyhow::Result<Answer> {
        match self {
            Self::Policy(policy) => {
                let connection = match device {
                    Some(device) => at_port(connection, policy::port_at(policy, device)?),
                    None => connection,
                };
                Ok(Answer::Rule(policy.explain(&connection)))
            }
            Self::Kernel(_) if connection.tenant.is_some() => bail!(
                "the daemon does not run, and the rules in the kernel have no names of tenants: name the \
                 guest's port by --device, or the policy by --file"
            ),
            Self::Kernel(shared) => match device {
                Some(device) => {
                    let index = Port::open(device)?.index()?;
                    let index = index.with_context(|| {
                        format!("`{device}` is under no policy: `vcc ports` shows its treatment")
                    })?;
                    judged(shared, index, device, &connection)
                }
                None => of_all_ports(shared, &connection),
            },
        }
    }

    /// For a connection at its port, or as if it was at a device.
    pub(super) fn of_live(
        &self,
        connection: Connection,
        live: &Live,
        device: Option<&str>,
    ) -> anyhow::Result<Answer> {
        let port = &*live.flow.port;
        match self {
            // A file may not name the port.
            Self::Policy(policy) if device.is_none() && connection.tenant.is_none() => {
                let connection = match policy::port_at(policy, port) {
                    Ok(port) => at_port(connection, port),
                    Err(_) => connection,
                };
                self.of_any(connection, None)
            }
            Self::Kernel(shared) if connection.tenant.is_none() => match live.index {
                Some(index) => judged(shared, index, port, &connection),
                None if live.is_of_domain => Ok(Answer::Unknown(format!(
                    "`vcc domain` serves {port} by its own rules: name their policy by --file to see why the \
                     rule below applies"
                ))),
                None => Ok(Answer::Unknown(format!(
                    "{port} was attached by hand, so no rule applies to its connections"
                ))),
            },
            _ => self.of_any(connection, device),
        }
    }
}

fn at_port(connection: Connection, port: &PortSelector) -> Connection {
    let Affiliation { tenant, class } = port.affiliation();
    Connection { tenant: tenant.map(str::to_owned), class: class.map(str::to_owned), ..connection }
}

impl Answer {
    /// Why the live connection is under another rule, if it is.
    pub(super) fn difference(&self, live: &Live, arguments: &Arguments) -> Option<String> {
        let Self::Rule(Explanation { name, .. }) = self else { return None };
        let port = &live.flow.port;
        let Some(rule) = live.flow.rule.as_deref() else {
            let is_by_hand = live.index.is_none() && !live.is_of_domain;
            return is_by_hand.then(|| {
                format!("{port} was attached by hand, so no rule applies to its connections yet")
            });
        };
        if rule == name {
            return None;
        }
        let is_hypothetical = arguments.tenant.is_some() || arguments.role.is_some();
        Some(match live.flow.is_current {
            _ if live.is_of_domain => {
                format!(
                    "`vcc domain` applies its own rules at {port}: the connection is under `{rule}`"
                )
            }
            _ if arguments.file.is_some() => {
                format!("the connection is under `{rule}` of the policy in force, not of this file")
            }
            false => format!(
                "the connection is still under `{rule}` of the previous policy: its next segment brings it \
                 under `{name}`"
            ),
            _ if is_hypothetical => {
                format!("the connection is under `{rule}`, because its own tenant or role differs")
            }
            _ => format!(
                "the connection is under `{rule}` in the kernel, whose rules differ from the daemon's policy: \
                 reload the policy (`vcc policy apply`)"
            ),
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(explanation) => explanation.fmt(f),
            Self::Unknown(why) => writeln!(f, "{why}"),
        }
    }
}

fn judged(
    shared: &SharedPolicy,
    index: u32,
    port: &str,
    connection: &Connection,
) -> anyhow::Result<Answer> {
    let judgement = shared.judge(index, connection)?;
    let Judgement { rule, name, treatment, pool, misses } =
        judgement.context("no policy is in force on this host")?;
    if treatment.params.mode().is_none() || treatment.params.underlay().is_none() {
        bail!("the rules in the kernel are of another version of vcc: name the policy by --file");
    }
    let miss = |(name, properties): (String, Vec<Property>)| {
        let reasons = properties.into_iter().map(|it| reason(it, port, connection)).collect();
        Miss { name, reasons }
    };
    let misses = misses.into_iter().map(miss).collect();
    Ok(Answer::Rule(Explanation::of_treatment((rule, name), &treatment, pool.as_ref(), misses)))
}

/// The tables do not have what the rule admits instead.
fn reason(property: Property, port: &str, connection: &Connection) -> String {
    let value = match property {
        Property::Port => format!("tenant and class are those of {port}"),
        Property::Peer => format!("peer is {}", connection.peer.ip().to_canonical()),
        Property::GuestPort => format!("guest port is {}", connection.guest.port()),
        Property::PeerPort => format!("peer port is {}", connection.peer.port()),
        Property::Role => format!("role is {}", connection.role),
        Property::Vlan => match connection.vlan {
            None | Some(0) => "VLAN is untagged".to_owned(),
            Some(vlan) => format!("VLAN is {vlan}"),
        },
    };
    format!("{value}, which the rule does not admit")
}

/// The same for the guests of all ports, or an error that says how to choose.
fn of_all_ports(shared: &SharedPolicy, connection: &Connection) -> anyhow::Result<Answer> {
    let mut ports: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut first = None;
    for port in Port::list()? {
        let Some(index) = port.index()? else { continue };
        let answer = judged(shared, index, port.device(), connection)?;
        if let Answer::Rule(Explanation { name, .. }) = &answer {
            ports.entry(name.clone()).or_default().push(port.device().to_owned());
        }
        first.get_or_insert(answer);
    }
    if ports.len() > 1 {
        let rules = ports.iter().map(|(rule, ports)| format!("`{rule}` at {}", ports.join(", ")));
        bail!(
            "the rule depends on the guest's port: {}; name it by --device",
            rules.collect::<Vec<_>>().join("; ")
        );
    }
    first.context(
        "the daemon does not run, and no port is under a policy: name the policy by --file",
    )
}
