//! The cost of a policy: the smallest, and one of the largest size.

use std::fmt::Write;
use std::net::SocketAddr;

use vcc_policy::{Affiliation, Policy};
use vcc_port::{AttachOptions, Datapath, Error, Program, Result, SharedPolicy};

use super::Subject;
use super::case::{Case, Cursor};
use super::cases::{FROM_GUEST, TO_GUEST};
use super::connection::*;
use super::harness::Harness;

/// The size of a policy, and the names of its cases.
pub(super) struct Size {
    rules: u32,
    networks_a_rule: u32,
    names: [&'static str; 3],
    what: [&'static str; 3],
}

pub(super) const SIZES: [Size; 2] = [
    Size {
        rules: 0,
        networks_a_rule: 0,
        names: ["one_rule_from_guest_data", "one_rule_to_guest_ack", "one_rule_syn"],
        what: [
            "from_guest_data at a port under a policy of one rule",
            "to_guest_ack there",
            "a SYN there, judged and left alone",
        ],
    },
    Size {
        rules: 1000,
        networks_a_rule: 10,
        names: ["many_rules_from_guest_data", "many_rules_to_guest_ack", "many_rules_syn"],
        what: [
            "from_guest_data under 1,001 rules with 10,000 networks",
            "to_guest_ack there",
            "a SYN there, judged by the last rule and left alone",
        ],
    },
];

/// Ignored by either policy.
const IGNORED: SocketAddr = end(5, 81);

fn text(size: &Size) -> String {
    let mut text = String::new();
    for rule in 0..size.rules {
        let first = rule * size.networks_a_rule;
        let networks: Vec<String> = (first..first + size.networks_a_rule)
            .map(|number| format!("\"10.{}.{}.0/24\"", number / 250, number % 250))
            .collect();
        let _ = writeln!(
            text,
            "[[rules]]\nname = \"r{rule}\"\npeer = [{}]\npeer_port = {}\nmode = \"ignore\"",
            networks.join(", "),
            1000 + rule
        );
    }
    text + "[[rules]]\nname = \"it\"\npeer_port = 80\n"
}

/// The connection is one of the last rule but the default, which ignores.
pub(super) fn subject(size: Size) -> Result<Subject> {
    const INDEX: u32 = 0;
    let wrong = |why: String| Error::System { doing: "measure a policy".into(), why };
    let policy = Policy::parse(&text(&size), "policy").map_err(|e| wrong(e.to_string()))?.policy;
    let shared = SharedPolicy::unpinned()?;
    shared.apply(&policy, &[(INDEX, Affiliation::default())])?;
    let options = AttachOptions::default();
    let datapath = Datapath::load_with_yardsticks(Some((&shared, INDEX)), &options)?;
    establish(&datapath, PEER)?;
    let harness = Harness::load(&datapath)?;
    let Size { names, what, .. } = size;
    let cases = vec![
        Case::new(names[0], what[0], Program::FromGuest, &data(PEER), FROM_GUEST),
        Case::new(names[1], what[1], Program::ToGuest, &ack(PEER, GUEST), TO_GUEST),
        Case::new(
            names[2],
            what[2],
            Program::FromGuest,
            &syn(GUEST, IGNORED),
            Cursor { seq_step: 0, ..FROM_GUEST },
        ),
    ];
    Ok(Subject { datapath, harness, cases })
}
