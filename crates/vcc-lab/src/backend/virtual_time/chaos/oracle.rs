//! What may have happened to files, and what never.

use super::super::plan::FROM_PORT;
use super::ports::Memory;
use super::{GUESTS, TRANSFERS};
use std::sync::Arc;
use vcc_results::result::RunData;

/// What went wrong. A file is whole at both ends. Only where a port has ended that had promised more
/// of its connection than it had delivered, both ends see a RST instead, but for a receiver that had all
/// of it already, or where the receiver's port depended on it (law 16). That none ends in order within a
/// file, the receivers see to.
pub fn problems(data: &RunData, memories: &[Arc<Memory>]) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, flow) in data.flows.iter().enumerate() {
        let guest = GUESTS[number];
        if !flow.payload_ok {
            problems.push(format!("{guest}: what arrived is not what was sent"));
        }
        let [sender, receiver] = &flow.transfer_ends;
        for file in 0..TRANSFERS {
            let port = FROM_PORT + number as u16 + file as u16;
            let is_broken = memories[number].has_ended(number, port);
            // The receiver's port may have accepted it, or stored data of it: all may have arrived by then.
            let is_receivers = memories[GUESTS.len()].has_ended(number, port);
            let has_ended = is_broken || is_receivers;
            let whole = [sender, receiver].map(|ends| ends.get(&file).map(|end| end.is_whole));
            let is_right = match whole {
                [Some(true), Some(true)] => !is_broken,
                [Some(false), Some(_)] => has_ended,
                // The receiver's port had accepted it, and the receiver has never heard of it.
                [Some(false), None] => is_receivers,
                _ => false,
            };
            if !is_right {
                let [sent, received] = whole.map(wholeness);
                let promise = if has_ended { ", its promise broken" } else { "" };
                problems.push(format!(
                    "{guest}'s file {file}: {sent} at the sender, {received} at the receiver{promise}"
                ));
            }
            if whole[0].is_none() {
                // The next one has not begun.
                break;
            }
        }
    }
    problems
}

fn wholeness(is_whole: Option<bool>) -> &'static str {
    match is_whole {
        Some(true) => "whole",
        Some(false) => "reset",
        None => "under way",
    }
}
