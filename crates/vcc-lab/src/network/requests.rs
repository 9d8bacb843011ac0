//! The requests of a case: names become numbers, and each call goes out from where it is made.

use super::file::{FlowGroup, FlowPattern, Group, Tables};
use crate::experiment::bounded::Share;
use crate::experiment::problem::{Problem, field};
use vcc_traffic::Pattern;
use vcc_traffic::requests::{Call, Kind};

type Checked<T> = Result<T, Problem>;

/// The number of a request.
fn kind_of(tables: &Tables, name: &str) -> Option<usize> {
    tables.requests.keys().position(|known| known == name)
}

/// What the clients of a group ask for.
pub(super) fn asks(
    tables: &Tables,
    group: &FlowGroup,
) -> Result<Vec<(usize, u32)>, (&'static str, String)> {
    let is_requests = matches!(group.traffic, Pattern::Requests(_));
    if !is_requests && !group.asks.is_empty() {
        return Err(("asks", "only valid for requests".into()));
    }
    if let Pattern::Requests(requests) = group.traffic {
        if (requests.think_ms > 0 || requests.strobe) && group.asks.is_empty() {
            let text = "'think_ms' and 'strobe' are of clients, which have 'asks'";
            return Err(("traffic", text.into()));
        }
    }
    let number = |(name, share): (&String, &Share)| {
        let kind = kind_of(tables, name).ok_or_else(|| format!("there is no request '{name}'"));
        kind.map(|kind| (kind, share.get())).map_err(|text| ("asks", text))
    };
    group.asks.iter().map(number).collect()
}

/// The file's requests by number, with the numbers of a case's groups of flows.
pub(super) fn kinds(tables: &Tables, groups: &[FlowGroup]) -> Checked<Vec<Kind>> {
    let mut kinds = Vec::new();
    for (name, request) in &tables.requests {
        let mut calls = Vec::new();
        for (index, call) in request.calls.iter().enumerate() {
            let refused = |field: &str, text| {
                Err(Problem::new(field!["requests", name, "calls", index, field], text))
            };
            let Some(kind) = kind_of(tables, &call.request) else {
                return refused("request", format!("there is no request '{}'", call.request));
            };
            let Some(group) = groups.iter().position(|group| group.name == call.flows) else {
                return refused("flows", format!("there is no group of flows '{}'", call.flows));
            };
            if !is_of_server(&groups[group]) {
                let text = format!("'{}' must be requests without 'asks'", call.flows);
                return refused("flows", text);
            }
            let (count, at_once) = (call.count.get(), call.at_once.get());
            calls.push(Call { kind, group, count, at_once });
        }
        kinds.push(Kind {
            request_bytes: request.request_bytes.get().into(),
            response_bytes: request.response_bytes.get().into(),
            calls,
        });
    }
    check_ends(tables, &kinds)?;
    check_places(tables, &kinds, groups)?;
    Ok(kinds)
}

fn is_of_server(group: &FlowGroup) -> bool {
    matches!(group.traffic, Pattern::Requests(_)) && group.asks.is_empty()
}

/// No request leads to another of its own kind.
fn check_ends(tables: &Tables, kinds: &[Kind]) -> Checked<()> {
    let mut ends = vec![false; kinds.len()];
    for _ in kinds {
        for (number, kind) in kinds.iter().enumerate() {
            ends[number] = kind.calls.iter().all(|call| ends[call.kind]);
        }
    }
    let endless = tables.requests.keys().zip(ends).find(|(_, ends)| !ends);
    endless.map_or(Ok(()), |(name, _)| {
        Err(Problem::new(field!["requests", name, "calls"], "its calls lead back to itself"))
    })
}

/// A server asks over flows of its own.
fn check_places(tables: &Tables, kinds: &[Kind], groups: &[FlowGroup]) -> Checked<()> {
    let asked = groups.iter().enumerate().flat_map(|(number, group)| {
        let kinds = group.asks.keys().filter_map(|name| kind_of(tables, name));
        kinds.map(move |kind| (kind, number))
    });
    let called = kinds.iter().flat_map(|kind| &kind.calls).map(|call| (call.kind, call.group));
    for (kind, over) in asked.chain(called) {
        let server = answered_by(&groups[over]);
        let begins_at = |call: &Call| groups[call.group].from.as_str();
        let elsewhere = |call: &Call| Some(begins_at(call)) != server;
        let calls = &kinds[kind].calls;
        let Some(index) = calls.iter().position(elsewhere) else { continue };
        let (flows, from) = (&groups[calls[index].group].name, begins_at(&calls[index]));
        let server = server.map_or("guests of no group".into(), |name| format!("'{name}'"));
        let text = format!(
            "'{flows}' begin at '{from}', but over '{}' it is {server} that responds",
            groups[over].name
        );
        let name = tables.requests.keys().nth(kind).map_or("", |name| name);
        return Err(Problem::new(field!["requests", name, "calls", index, "flows"], text));
    }
    Ok(())
}

/// The group of guests at the other end.
fn answered_by(group: &FlowGroup) -> Option<&str> {
    match group.pattern {
        FlowPattern::Peers => None,
        FlowPattern::Stride | FlowPattern::AllToAll => Some(&group.from),
        FlowPattern::Incast => group.to.as_deref(),
    }
}

/// What flows of requests do not have.
pub(super) fn check_guests(groups: &[Group], flows: &[FlowGroup]) -> Result<(), String> {
    let takes_part = |name: &str| {
        let requests = flows.iter().filter(|it| matches!(it.traffic, Pattern::Requests(_)));
        requests.into_iter().any(|it| it.from == name || answered_by(it) == Some(name))
    };
    match groups.iter().find(|group| group.cwnd_clamp_segs.is_some() && takes_part(&group.name)) {
        Some(group) => Err(group.name.clone()),
        None => Ok(()),
    }
}
