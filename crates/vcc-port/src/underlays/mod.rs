//! The underlays that are loaded at run time: which there are, and programs that have them. `host`
//! loads and unloads them.

mod link;
mod pinned;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use vcc_engine::{Loaded, Slot, Underlay, sys};
use vcc_underlay::{Machine, Object};

use crate::{Error, Result};
pub(crate) use link::Linked;
pub(crate) use pinned::{pin, unpin};

/// Underlays in their slots.
#[derive(Clone, Debug, Default)]
pub struct Underlays {
    loaded: Vec<(Slot, Object)>,
    /// Of slots without an object, the traits that connections were promised which may still be there.
    left: [Option<u32>; sys::UNDERLAY_SLOTS as usize],
    refused: Vec<Refused>,
}

/// An underlay that is pinned and not understood, as another version's. Its connections continue by
/// NewReno.
#[derive(Clone, Debug)]
struct Refused {
    slot: Slot,
    name: Option<String>,
    why: String,
}

static OF_THIS_PROCESS: Mutex<Vec<(Slot, Object)>> = Mutex::new(Vec::new());

impl Underlays {
    /// Those of hosts that are not pinned, which only this process has: [`Self::use_here`].
    pub(crate) fn of_this_process() -> Self {
        let loaded = OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { loaded, ..Self::default() }
    }

    /// Lets this process's own datapaths and engine run the underlay, from the next one on. What is
    /// pinned stays as it is.
    pub fn use_here(object: &Object) -> Result<Underlay> {
        let mut loaded = OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let before = loaded.iter().position(|(_, it)| it.name() == object.name());
        let slot = match before {
            Some(at) => loaded.swap_remove(at).0,
            None => Self { loaded: loaded.clone(), ..Self::default() }.free_slot()?,
        };
        loaded.push((slot, object.clone()));
        Ok(slot.fill(described(object)))
    }

    /// In the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Object)> {
        self.loaded.iter().map(|(slot, object)| (*slot, object))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.loaded.is_empty()
    }

    pub(crate) fn find(&self, name: &str) -> Option<(Slot, &Object)> {
        self.iter().find(|(_, object)| object.name() == name)
    }

    /// The slots of all that have the name, whether understood or not.
    pub(crate) fn slots_of(&self, name: &str) -> Vec<Slot> {
        let refused = self.refused.iter().filter(|it| it.name.as_deref() == Some(name));
        let loaded = self.iter().filter(|(_, it)| it.name() == name).map(|(slot, _)| slot);
        loaded.chain(refused.map(|it| it.slot)).collect()
    }

    pub(crate) fn free_slot(&self) -> Result<Slot> {
        let refused = |slot: &Slot| self.refused.iter().any(|it| it.slot == *slot);
        let loaded = |slot: &Slot| self.iter().any(|(it, _)| it == *slot);
        Slot::all().find(|slot| !refused(slot) && !loaded(slot)).ok_or(Error::NoSlotLeft)
    }

    pub(crate) fn with(&self, slot: Slot, object: Object) -> Self {
        let mut next = self.clone();
        next.loaded.push((slot, object));
        next.loaded.sort_by_key(|(slot, _)| slot.index());
        next.left[slot.index()] = None;
        next
    }

    pub(crate) fn without(&self, slot: Slot) -> Self {
        let mut next = self.clone();
        next.refused.retain(|it| it.slot != slot);
        next.loaded.retain(|(it, object)| {
            if *it == slot {
                next.left[slot.index()] = Some(promised(object.traits()));
            }
            *it != slot
        });
        next
    }

    /// The data on each slot that the programs need.
    fn slots(&self) -> sys::vcc_slots {
        let mut traits = self.left.map(|left| left.unwrap_or(sys::CC_CONTROLS));
        for (slot, object) in self.iter() {
            traits[slot.index()] = object.traits();
        }
        sys::vcc_slots { traits }
    }

    /// From here on this process knows their names. A name that is there no longer is free again.
    pub(crate) fn name_here(&self) {
        for slot in Slot::all() {
            match self.iter().find(|(it, _)| *it == slot) {
                Some((_, object)) => drop(slot.fill(described(object))),
                None => slot.empty(),
            }
        }
    }
}

/// The traits that a connection keeps when its underlay is gone.
fn promised(traits: u32) -> u32 {
    traits & (sys::CC_CONTROLS | sys::CC_ECN | sys::CC_ECT_ALL)
}

fn described(object: &Object) -> Loaded {
    Loaded {
        name: interned(object.name()),
        about: interned(object.about()),
        traits: object.traits(),
        hooks: Arc::new(Machine::from_object(object)),
    }
}

/// The text for as long as the process lives, once however often it is asked for: a daemon asks
/// with each policy.
fn interned(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(kept);
    kept
}
