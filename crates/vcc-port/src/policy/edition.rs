//! Writing one of the two editions of a policy, while the other is in force.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{Act, Params, sys};
use vcc_policy::{Compiled, Policy, Rule, RuleSet, Treatment};

use super::RuleTotals;
use super::maps::{NAME_BYTES, PolicyMaps};
use super::prefixes;
use crate::clock::now_s;
use crate::plain::{Dense, Plain, from_bytes, to_bytes};
use crate::{Error, Result};

/// Changes the rules of an edition in place.
pub(super) fn replace_underlay(maps: &PolicyMaps, edition: u32, from: u8, to: u8) -> Result<u32> {
    let mut replaced = 0;
    for rule in 0..sys::RULES_MAX {
        let index = edition * sys::RULES_MAX + rule;
        let mut params: sys::vcc_params = read(&maps.rules, index)?;
        if params.underlay == from {
            params.underlay = to;
            maps.rules
                .update(&index.to_ne_bytes(), to_bytes(&params), MapFlags::ANY)
                .map_err(|e| Error::system("change a rule's underlay", e))?;
            replaced += 1;
        }
    }
    Ok(replaced)
}

/// Writes an edition, except its fields in `struct vcc_policy`. `pools` are the numbers of the
/// policy's pools in the datapath.
pub(super) fn write(
    maps: &PolicyMaps,
    edition: u32,
    policy: &Policy,
    compiled: &Compiled,
    tenants: &[(u32, RuleSet)],
    pools: &[u16],
) -> Result<()> {
    let rules = policy.rules();
    let before = policing(maps, (edition + 1) % sys::EDITIONS)?;
    let of_rule = |rule: &Rule| {
        let mut params = params(rule.treatment(), policy, pools);
        let since_s = before.as_ref().and_then(|before| before.get(rule.name()).copied());
        params.policed_s = Params(params).policed_since_s(before.is_none(), since_s, now_s());
        params
    };
    let params: Vec<sys::vcc_params> = rules.iter().map(of_rule).collect();
    let names: Vec<[u8; NAME_BYTES as usize]> = rules.iter().map(|r| name(r.name())).collect();
    let none = sys::vcc_rule_totals::default();
    write_half(&maps.rules, edition, &params, sys::vcc_params::default())?;
    write_half(&maps.rule_totals, edition, &vec![none; rules.len()], none)?;
    write_half(&maps.rule_names, edition, &names, [0; NAME_BYTES as usize])?;
    let sets: Vec<sys::vcc_rule_set> =
        compiled.sets.iter().map(|words| sys::vcc_rule_set { words: *words }).collect();
    write_part(&maps.rule_sets, edition, 0, &sets)?;
    let numbers: Vec<sys::vcc_port_sets> = compiled
        .port_numbers
        .iter()
        .map(|[guest, peer]| sys::vcc_port_sets { as_guest_port: *guest, as_peer_port: *peer })
        .collect();
    write_part(&maps.port_numbers, edition, 0, &numbers)?;
    write_part(&maps.vlans, edition, 0, &compiled.vlans)?;
    for (port, set) in tenants {
        write_tenant(maps, edition, *port, set)?;
    }
    prefixes::write(&maps.prefixes, edition, compiled)
}

pub(super) fn write_tenant(
    maps: &PolicyMaps,
    edition: u32,
    port: u32,
    set: &RuleSet,
) -> Result<()> {
    write_part(&maps.tenants, edition, port, &[sys::vcc_rule_set { words: *set }])
}

pub(super) fn rules_of_port(maps: &PolicyMaps, edition: u32, port: u32) -> Result<Vec<Params>> {
    let set: sys::vcc_rule_set = read(&maps.tenants, half(&maps.tenants, edition).start + port)?;
    let rules = rule_names(maps, edition)?.len();
    let has = |rule: &usize| set.words[rule / 64] >> (rule % 64) & 1 != 0;
    let params = |rule| read(&maps.rules, half(&maps.rules, edition).start + rule as u32);
    (0..rules).filter(has).map(|rule| params(rule).map(Params)).collect()
}

/// Since when each rule of an edition polices, by its name. None: there is no such edition.
fn policing(maps: &PolicyMaps, edition: u32) -> Result<Option<HashMap<String, u32>>> {
    let names = rule_names(maps, edition)?;
    if names.is_empty() {
        return Ok(None);
    }
    let mut since = HashMap::new();
    for (name, at) in names.into_iter().zip(half(&maps.rules, edition)) {
        let params: sys::vcc_params = read(&maps.rules, at)?;
        if Params(params).rejects_unknown() {
            since.insert(name, params.policed_s);
        }
    }
    Ok(Some(since))
}

fn params(treatment: &Treatment, policy: &Policy, pools: &[u16]) -> sys::vcc_params {
    let mut params = treatment.params.0;
    // A port that drains may have connections under a rule for ports with a buffer.
    (params.act, params.retransmit, params.receive) = (Act::Window.number(), 0, 0);
    if let Some(pool) = treatment.pool {
        params.pool = pools[pool];
        params.pool_weight = treatment.weight;
        params.pool_bytes = policy.pools()[pool].window_bytes;
    }
    params
}

/// The length of names was checked with the policy.
pub(super) fn name(text: &str) -> [u8; NAME_BYTES as usize] {
    let mut bytes = [0; NAME_BYTES as usize];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

pub(super) fn text(name: &[u8]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

pub(super) fn rule_names(maps: &PolicyMaps, edition: u32) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for at in half(&maps.rule_names, edition) {
        let name = text(&look_up(&maps.rule_names, at)?);
        if name.is_empty() {
            break;
        }
        names.push(name);
    }
    Ok(names)
}

pub(super) fn totals(maps: &PolicyMaps, edition: u32, rules: u32) -> Result<Vec<RuleTotals>> {
    let of_rule = |at| {
        let sums: sys::vcc_rule_totals = read(&maps.rule_totals, at)?;
        Ok(RuleTotals {
            connections: sums.connections,
            marks: sums.marks,
            reductions: sums.reductions,
            retransmissions: sums.retransmissions,
            drops: sums.drops,
        })
    };
    half(&maps.rule_totals, edition).take(rules as usize).map(of_rule).collect()
}

fn half(map: &MapHandle, edition: u32) -> std::ops::Range<u32> {
    let entries = map.max_entries() / sys::EDITIONS;
    edition * entries..(edition + 1) * entries
}

const READ: &str = "read the policy";

pub(super) fn look_up(map: &MapHandle, at: u32) -> Result<Vec<u8>> {
    map.lookup(&at.to_ne_bytes(), MapFlags::ANY)
        .map_err(|e| Error::system(READ, e))?
        .ok_or_else(|| Error::layout(READ))
}

pub(super) fn read<T: Plain>(map: &MapHandle, at: u32) -> Result<T> {
    from_bytes(&look_up(map, at)?).ok_or_else(|| Error::layout(READ))
}

/// Writes an edition's half of an array: `values`, then `rest` up to the end.
fn write_half<T: Dense>(map: &MapHandle, edition: u32, values: &[T], rest: T) -> Result<()> {
    let entries = half(map, edition).len();
    let mut all = values.to_vec();
    all.resize(entries, rest);
    write_part(map, edition, 0, &all)
}

/// Writes entries of an edition's half in one system call.
fn write_part<T: Dense>(map: &MapHandle, edition: u32, first: u32, values: &[T]) -> Result<()> {
    let place = half(map, edition);
    let first = place.start + first;
    if values.is_empty() {
        return Ok(());
    }
    if first + values.len() as u32 > place.end {
        return Err(Error::layout("write a policy"));
    }
    let keys: Vec<u8> = (first..first + values.len() as u32).flat_map(u32::to_ne_bytes).collect();
    // The kernel pads entries to 8 bytes internally only.
    let bytes: Vec<u8> = values.iter().flat_map(|value| to_bytes(value).to_vec()).collect();
    map.update_batch(&keys, &bytes, values.len() as u32, MapFlags::ANY, MapFlags::ANY)
        .map_err(|e| Error::system("write a policy", e))
}
