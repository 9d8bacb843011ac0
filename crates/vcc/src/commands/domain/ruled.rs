//! A port under the host's policy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use vcc_domain::{BufferSpec, FlowKey, Rule, Rules};
use vcc_engine::Act;
use vcc_policy::{Connection, Policy, PortSelector, Role};
use vcc_vhost::Card;

use super::promises::Promises;
use crate::commands::policy;
use crate::output;

/// The file of the policy, and the port that it is about.
pub struct Ruled {
    file: PathBuf,
    socket: String,
}

/// What the policy says about the port.
pub struct Terms {
    pub rules: Rules,
    pub buffer: BufferSpec,
    pub max_flows: u32,
    /// In words.
    pub told: String,
}

impl Ruled {
    pub fn new(file: &Path, socket: &Path) -> anyhow::Result<Self> {
        let file = std::path::absolute(file)?;
        Ok(Self { file, socket: socket.to_string_lossy().into_owned() })
    }

    pub fn path(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }

    /// Reads the file. What is wrong with it is printed, each with its place.
    pub fn read(&self) -> anyhow::Result<Terms> {
        let policy = policy::read(&self.file)?;
        let (file, socket) = (self.file.display(), &self.socket);
        let port = policy.port_of_socket(socket).with_context(|| {
            format!("{file} has no [[ports]] with a `socket` that matches {socket}: add one")
        })?;
        Ok(terms(&policy, port, format!("{} of {file}", policy.count())))
    }

    /// Reads the file again. If it cannot be used, the policy in force stays. Prints which of both, and
    /// returns it.
    pub fn reload(&self, card: &Card, promises: &mut Promises) -> Result<String, String> {
        match self.read().and_then(|terms| obey(terms, card, promises)) {
            Ok(told) => {
                output::say(&format!("{told}\n"));
                Ok(told)
            }
            Err(error) => {
                let told = format!("the policy in force stays: {error:#}");
                output::complain(&told);
                Err(told)
            }
        }
    }
}

impl Terms {
    pub fn splits(&self) -> bool {
        let act = |rule: &Rule| rule.params.0.act;
        self.rules.rules.iter().any(|rule| act(rule) == Act::Split.number())
    }
}

fn obey(terms: Terms, card: &Card, promises: &mut Promises) -> anyhow::Result<String> {
    if terms.splits() {
        promises.keep(card)?;
    }
    let Terms { rules, buffer, max_flows, told } = terms;
    let (connections, tracked) = card.change(|port| {
        port.set_rules(rules);
        port.set_buffer(buffer);
        (port.flows().count(), port.max_flows())
    });
    let still = match tracked == max_flows as usize {
        true => String::new(),
        false => format!("; still tracks {tracked} connections, not {max_flows}, until a restart"),
    };
    Ok(format!("obeys {told}, with {connections} connections{still}"))
}

fn terms(policy: &Policy, port: &PortSelector, told: String) -> Terms {
    let rule = |rule: &vcc_policy::Rule| Rule {
        name: rule.name().to_owned(),
        params: rule.treatment().params,
    };
    let tables = policy.compile();
    let of_tenant = tables.tenant_set(port.tenant());
    let judge = move |key: &FlowKey, guest_opened: bool| {
        let role = if guest_opened { Role::Client } else { Role::Server };
        let (guest, peer, vlan) = (key.guest(), key.peer(), key.vlan());
        tables.judge(&of_tenant, &Connection { tenant: None, guest, peer, vlan, role })
    };
    let buffer = port.buffer().unwrap_or_default();
    Terms {
        rules: Rules {
            rules: policy.rules().iter().map(rule).collect(),
            judge: Arc::new(judge),
            polices: policy.polices_for(port.tenant()),
        },
        buffer: BufferSpec { size_bytes: buffer.size_bytes, policy: buffer.policy },
        max_flows: port.max_flows(),
        told,
    }
}
