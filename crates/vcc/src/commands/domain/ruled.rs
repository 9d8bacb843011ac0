//! A port under the host's policy.

use std::path::{Path, PathBuf};

use anyhow::Context;
use vcc_command::output;
use vcc_domain::{BufferSpec, Rules};
use vcc_engine::{Act, Params, Receive};
use vcc_policy::{Policy, PortSelector};
use vcc_vhost::Card;

use super::promises::Promises;
use super::serving::Place;
use crate::commands::policy;

/// The file of the policy, and the port that it is about.
pub struct Ruled {
    file: PathBuf,
    place: Place,
}

/// The policy's treatment of the port.
pub struct Terms {
    pub rules: Rules,
    pub buffer: BufferSpec,
    pub max_flows: u32,
    /// In words.
    pub text: String,
}

impl Ruled {
    pub fn new(file: &Path, place: &Place) -> anyhow::Result<Self> {
        Ok(Self { file: std::path::absolute(file)?, place: place.clone() })
    }

    pub fn path(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }

    /// Reads the file, and prints each of its problems with its place.
    pub fn read(&self) -> anyhow::Result<Terms> {
        let policy = policy::read(&self.file)?;
        let file = self.file.display();
        let port = match &self.place {
            Place::Card { socket, .. } => {
                let socket = socket.to_string_lossy();
                policy.port_of_socket(&socket).with_context(|| {
                    format!("{file} has no [[ports]] with a `socket` that matches {socket}: add one")
                })?
            }
            Place::Device(device) => policy.port_of_detour(device).with_context(|| {
                format!(
                    "{file} has no [[ports]] with a `buffer` for {device}, or one without a `buffer` \
                     matches {device} first: put one before it, like device = \"{device}\" with \
                     buffer = \"4M\""
                )
            })?,
        };
        Ok(terms(&policy, port, format!("{} of {file}", policy.count())))
    }

    /// Reads the file again. If it is invalid, the previous policy stays in force. Prints and returns the
    /// outcome.
    pub fn reload(&self, card: &Card, promises: &mut Promises) -> Result<String, String> {
        match self.read().map(|terms| obey(terms, card, promises)) {
            Ok(text) => {
                output::say(&format!("{text}\n"));
                Ok(text)
            }
            Err(error) => {
                let text = format!(
                    "the previous policy stays in force: {}",
                    output::with_causes(error.as_ref())
                );
                output::complain(&text);
                Err(text)
            }
        }
    }
}

impl Terms {
    pub fn wants_ledger(&self) -> bool {
        self.rules.rules.iter().any(|rule| wants_ledger(&rule.params))
    }
}

/// May a port promise what only it has?
pub fn wants_ledger(params: &Params) -> bool {
    params.0.act == Act::Split.number() || params.0.receive >= Receive::Buffer.number()
}

fn obey(terms: Terms, card: &Card, promises: &mut Promises) -> String {
    if terms.wants_ledger() {
        promises.keep(card);
    }
    let Terms { rules, buffer, max_flows, text } = terms;
    let (connections, tracked) = card.change(|port| {
        port.set_rules(rules);
        port.set_buffer(buffer);
        (port.flows().count(), port.max_flows())
    });
    let still = match tracked == max_flows as usize {
        true => String::new(),
        false => format!("; still tracks {tracked} connections, not {max_flows}, until a restart"),
    };
    format!("obeys {text}, with {connections} connections{still}")
}

fn terms(policy: &Policy, port: &PortSelector, text: String) -> Terms {
    let buffer = port.buffer().unwrap_or_default();
    Terms {
        rules: policy::rules_of(policy, port.affiliation()),
        buffer: BufferSpec { size_bytes: buffer.size_bytes, policy: buffer.policy },
        max_flows: port.max_flows(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use vcc_domain::Rule;
    use vcc_engine::{BufferPolicy, FlowKey, sys};

    use super::*;

    const POLICY: &str = r#"
[[ports]]
socket = "/run/*/card"
tenant = "crowded"
buffer = "8M"
buffer_policy = "none"
max_flows = 100

[[pools]]
name = "silver"
window = "1M"

[[pools]]
name = "gold"
window = "2M"

[[rules]]
name = "near"
tenant = "crowded"
role = "client"
peer = "10.0.0.0/8"
act = "hold"
retransmit = true
pool = "gold"
weight = 3

[[rules]]
name = "served"
tenant = "crowded"
role = "server"
guest_port = 80
receive = "ring"

[[rules]]
name = "bulk"
tenant = "crowded"
role = "client"
peer_port = 873
act = "split"
receive = "ring"

[[rules]]
name = "others"
tenant = "other"
act = "split"
"#;

    #[test]
    fn each_connection_has_the_first_rule_that_matches_it() {
        let policy = Policy::parse(POLICY, "p.toml").expect("a policy").policy;
        let port = policy.port_of_socket("/run/a/card").expect("a port");
        let terms = terms(&policy, port, String::new());
        assert!(terms.wants_ledger());
        assert_eq!((terms.buffer.size_bytes, terms.max_flows), (8 << 20, 100));
        assert_eq!(terms.buffer.policy, BufferPolicy::None);
        let of = |guest: &str, peer: &str, guest_opened| {
            let [guest, peer] = [guest, peer].map(|end| end.parse().expect("an end"));
            let rule = (terms.rules.judge)(&FlowKey::new(guest, peer, None), guest_opened);
            let Rule { name, params } = &terms.rules.rules[rule];
            (&**name, u32::from(params.0.act), params.0.retransmit != 0, params.0.receive != 0)
        };
        let (ours, near, far) = ("192.0.2.1:40000", "10.1.2.3:873", "198.51.100.9:873");
        let pools = terms.rules.rules.iter().map(|rule| rule.params.0);
        let pools: Vec<_> = pools.map(|it| (it.pool, it.pool_weight, it.pool_bytes)).collect();
        assert_eq!(pools[..2], [(1, 3, 2 << 20), (0, 0, 0)]);
        assert_eq!(terms.rules.pools, ["silver", "gold"]);
        assert_eq!(of(ours, near, true), ("near", sys::ACT_HOLD, true, false));
        assert_eq!(of(ours, far, true), ("bulk", sys::ACT_SPLIT, false, true));
        assert_eq!(of(ours, far, false), ("default", sys::ACT_WINDOW, false, false));
        assert_eq!(of("192.0.2.1:80", near, false), ("served", sys::ACT_WINDOW, false, true));
        assert_eq!(of("192.0.2.1:80", far, true), ("bulk", sys::ACT_SPLIT, false, true));
    }
}
