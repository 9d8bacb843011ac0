//! One connection as a value with a form in JSON.

use std::net::SocketAddr;

use crate::{Field, FlowState, Underlay, sys};
use serde::{Deserialize, Serialize};

/// A connection that continues on another host: its ends, its VLAN, and what describes it.
#[derive(Clone)]
pub struct Connection {
    pub guest: SocketAddr,
    pub peer: SocketAddr,
    /// The 802.1Q VLAN ID; None: untagged.
    pub vlan: Option<u16>,
    /// It is inside a tunnel.
    pub inside: bool,
    pub state: FlowState,
}

/// Beside a VLAN: the connection is inside a tunnel.
const INSIDE: u16 = sys::KEY_INSIDE as u16;

/// Guest, peer, VLAN, underlay, and the numbers of the [`Fields`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row(SocketAddr, SocketAddr, Option<u16>, String, Vec<u32>);

/// The fields of which rows have numbers, in their order; None for one that this version does not
/// know.
pub struct Fields(Vec<Option<&'static Field>>);

impl Fields {
    /// Those of the rows that this version writes.
    pub fn names() -> Vec<String> {
        Field::ALL.iter().map(|field| field.name.to_owned()).collect()
    }

    /// # Errors
    /// The name of a field that this version needs and that is not there.
    pub fn from_names(names: &[String]) -> Result<Self, &'static str> {
        Self::with(names, Field::needed())
    }

    pub(crate) fn with(names: &[String], needed: &[Field]) -> Result<Self, &'static str> {
        let lacks = |field: &&Field| !names.iter().any(|name| name == field.name);
        match needed.iter().find(lacks) {
            Some(field) => Err(field.name),
            None => Ok(Fields(names.iter().map(|name| Field::named(name)).collect())),
        }
    }
}

impl Row {
    pub fn from_connection(it: &Connection) -> Self {
        // One that only the process which loaded it can name has no name elsewhere either.
        let underlay = Underlay::from_number(it.state.underlay).map_or("", Underlay::name);
        let numbers = Field::ALL.iter().map(|field| field.value_in(&it.state)).collect();
        let place = if it.inside { Some(it.vlan.unwrap_or(0) | INSIDE) } else { it.vlan };
        Row(it.guest, it.peer, place, underlay.to_owned(), numbers)
    }

    /// None if no connection is like that.
    pub fn connection(&self, fields: &Fields) -> Option<Connection> {
        let Row(guest, peer, place, underlay, numbers) = self;
        if numbers.len() != fields.0.len() {
            return None;
        }
        // Its window is one of segments under any underlay. The rule here decides which is next.
        let underlay = underlay.parse().unwrap_or_else(|_| default_underlay());
        let mut state = FlowState::travelling(underlay);
        for (field, value) in fields.0.iter().zip(numbers) {
            if field.is_some_and(|field| !field.set(&mut state, *value)) {
                return None;
            }
        }
        let inside = place.is_some_and(|place| place & INSIDE != 0);
        let vlan = place.map(|place| place & !INSIDE).filter(|vlan| *vlan != 0);
        Some(Connection { guest: *guest, peer: *peer, vlan, inside, state })
    }
}

pub(crate) fn default_underlay() -> Underlay {
    let built_in = Underlay::built_in().find(|it| it.controls());
    built_in.expect("one of the underlays controls the window")
}
