//! Qdiscs and filters as rtnetlink(7) describes them.

use std::io;

use vcc_net::netlink::{self, Attributes, bytes};

/// struct tcmsg.
const HEADER_BYTES: usize = 20;
/// linux/pkt_sched.h.
pub(crate) const TC_H_ROOT: u32 = 0xffff_ffff;
/// The two hooks of a clsact qdisc; an ingress qdisc has the first.
pub(crate) const CLSACT_INGRESS: u32 = 0xffff_fff2;
pub(crate) const CLSACT_EGRESS: u32 = 0xffff_fff3;

pub(crate) struct Qdisc {
    pub ifindex: u32,
    pub kind: String,
    pub handle: u32,
    pub parent: u32,
}

pub(crate) struct Filter {
    pub kind: String,
    pub priority: u16,
    /// The name and ID of a BPF program.
    pub program: Option<(String, u32)>,
    /// Names of actions, with their target if they redirect.
    pub actions: Vec<Action>,
}

pub(crate) struct Action {
    pub kind: String,
    /// Of `mirred` in a mode that redirects.
    pub redirects_to: Option<u32>,
    /// TC_ACT_SHOT.
    pub drops: bool,
}

impl Qdisc {
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let payloads = netlink::dump(libc::RTM_GETQDISC, &request(0, 0))?;
        let parse = |payload: &Vec<u8>| {
            Some(Self {
                ifindex: number(payload, 4)?,
                handle: number(payload, 8)?,
                parent: number(payload, 12)?,
                kind: Attributes::behind(HEADER_BYTES, payload).text(libc::TCA_KIND)?,
            })
        };
        Ok(payloads.iter().filter_map(parse).collect())
    }
}

/// The filters of one hook.
pub(crate) fn filters(ifindex: u32, parent: u32) -> io::Result<Vec<Filter>> {
    let payloads = netlink::dump(libc::RTM_GETTFILTER, &request(ifindex, parent))?;
    Ok(payloads.iter().filter_map(|payload| filter(payload)).collect())
}

fn request(ifindex: u32, parent: u32) -> [u8; HEADER_BYTES] {
    let mut request = [0; HEADER_BYTES];
    request[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    request[12..16].copy_from_slice(&parent.to_ne_bytes());
    request
}

fn number(payload: &[u8], at: usize) -> Option<u32> {
    bytes(payload, at).map(u32::from_ne_bytes)
}

/// linux/pkt_cls.h.
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;
/// Where each kind has its actions.
const ACTIONS: &[(&str, u16)] =
    &[("basic", 3), ("bpf", 1), ("flower", 3), ("fw", 4), ("matchall", 2), ("u32", 7)];

/// None for a filter's own tables, which have no options besides their size.
fn filter(payload: &[u8]) -> Option<Filter> {
    let attributes = Attributes::behind(HEADER_BYTES, payload);
    let kind = attributes.text(libc::TCA_KIND)?;
    let options = attributes.nested(libc::TCA_OPTIONS);
    let program = options.u32(TCA_BPF_ID).filter(|_| kind == "bpf");
    let program = program.map(|id| (options.text(TCA_BPF_NAME).unwrap_or_default(), id));
    let actions = ACTIONS.iter().find(|(of, _)| *of == kind).map_or(Vec::new(), |(_, at)| {
        options.nested(*at).iter().filter_map(|(_, action)| parse_action(action)).collect()
    });
    if program.is_none() && actions.is_empty() {
        return None;
    }
    // The priority is the upper half of tcm_info.
    let priority = (number(payload, 16)? >> 16) as u16;
    Some(Filter { kind, priority, program, actions })
}

/// linux/pkt_cls.h, linux/tc_act/tc_mirred.h.
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_PARMS: u16 = 2;
const TC_ACT_SHOT: u32 = 2;
const TCA_EGRESS_REDIR: u32 = 1;
const TCA_INGRESS_REDIR: u32 = 3;

fn parse_action(action: &[u8]) -> Option<Action> {
    let attributes = Attributes::behind(0, action);
    let kind = attributes.text(TCA_ACT_KIND)?;
    // Each begins with tc_gen: index, capab, action, refcnt, bindcnt. tc_mirred continues with
    // eaction and ifindex.
    let parameters = attributes.nested(TCA_ACT_OPTIONS).get(TCA_PARMS).unwrap_or_default();
    let redirects = kind == "mirred"
        && matches!(number(parameters, 20), Some(TCA_EGRESS_REDIR | TCA_INGRESS_REDIR));
    Some(Action {
        redirects_to: number(parameters, 24).filter(|_| redirects),
        drops: kind == "gact" && number(parameters, 8) == Some(TC_ACT_SHOT),
        kind,
    })
}
