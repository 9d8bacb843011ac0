//! What a policy costs: a small one, and one as large as they get.

use std::fmt::Write;
use std::net::Ipv4Addr;

use vcc_engine::sys;
use vcc_policy::Policy;

use super::frames::{self, Endpoint};
use super::harness::{Cursor, Harness};
use super::{FROM_GUEST, GUEST, PEER, Subject, TO_GUEST, case, data, establish, segment};
use crate::{AttachOptions, Datapath, Error, Program, Result, SharedPolicy};

/// A policy's size, and the names of what is measured under it.
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

/// Is left alone by either policy.
const IGNORED: Endpoint = Endpoint { address: Ipv4Addr::new(192, 0, 2, 5), port: 81 };

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
    shared.apply(&policy, &[(INDEX, None)])?;
    let datapath = Datapath::load_under(&shared, INDEX, &AttachOptions::default())?;
    establish(&datapath, PEER, false)?;
    let harness = Harness::load(&datapath)?;
    let Size { names, what, .. } = size;
    let syn = frames::Segment {
        flags: sys::TCP_SYN as u8,
        ..segment(GUEST, IGNORED, &frames::SYN_OPTIONS, 0)
    };
    let cases = vec![
        case(names[0], what[0], Program::FromGuest, data(PEER), FROM_GUEST),
        case(
            names[1],
            what[1],
            Program::ToGuest,
            segment(PEER, GUEST, &frames::OPTIONS, 0),
            TO_GUEST,
        ),
        case(names[2], what[2], Program::FromGuest, syn, Cursor { seq_step: 0, ..FROM_GUEST }),
    ];
    Ok(Subject { datapath, harness, cases })
}
