//! The underlays that are loaded at run time, of this process: the slots of engine/cc/loaded.h.

use std::sync::{Arc, PoisonError, RwLock};

use crate::{Underlay, native, sys};

/// The hooks of an underlay that was not built in.
pub trait Hooks: Send + Sync {
    /// Runs the hook that `call` names (engine/cc/call.h). The engine bounds what it leaves in `cc`.
    fn run(
        &self,
        cc: &mut sys::vcc_cc_state,
        ack: Option<&sys::vcc_cc_ack>,
        params: Option<&sys::vcc_params>,
        call: u64,
    );
}

/// An underlay that was not built in.
#[derive(Clone)]
pub struct Loaded {
    /// In policies and commands.
    pub name: &'static str,
    /// One line for documentation.
    pub about: &'static str,
    /// `enum vcc_cc_trait`.
    pub traits: u32,
    pub hooks: Arc<dyn Hooks>,
}

/// A place for an underlay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u8);

/// What is known of a slot. The name stays when its underlay is unloaded: there may be connections
/// that still have its number.
#[derive(Clone)]
struct Known {
    loaded: Loaded,
    is_there: bool,
}

static SLOTS: RwLock<[Option<Known>; sys::UNDERLAY_SLOTS as usize]> = {
    const NONE: Option<Known> = None;
    RwLock::new([NONE; sys::UNDERLAY_SLOTS as usize])
};

impl Slot {
    pub fn all() -> impl Iterator<Item = Slot> {
        (0..sys::UNDERLAY_SLOTS as u8).map(Slot)
    }

    /// None if there is no such slot.
    pub fn from_index(index: u32) -> Option<Slot> {
        (index < sys::UNDERLAY_SLOTS).then_some(Slot(index as u8))
    }

    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The number of the slot's underlay in the engine's structs.
    pub fn number(self) -> u8 {
        sys::UNDERLAY_LOADED as u8 + self.0
    }

    pub(crate) fn of_number(number: u8) -> Option<Slot> {
        Self::from_index(u32::from(number).checked_sub(sys::UNDERLAY_LOADED)?)
    }

    /// From here on this process knows the underlay by its name and its number.
    pub fn fill(self, loaded: Loaded) -> Underlay {
        self.set(Some(Known { loaded, is_there: true }));
        Underlay::from_number(self.number()).expect("the slot has just been filled")
    }

    /// From here on no name stands for the slot, and flows with its number continue with NewReno.
    pub fn empty(self) {
        let known = self.known().map(|known| Known { is_there: false, ..known });
        self.set(known);
    }

    /// The underlay in it.
    pub fn underlay(self) -> Option<Underlay> {
        self.known().filter(|known| known.is_there)?;
        Underlay::from_number(self.number())
    }

    pub(crate) fn name(self) -> Option<&'static str> {
        self.known().map(|known| known.loaded.name)
    }

    pub(crate) fn about(self) -> Option<&'static str> {
        self.known().map(|known| known.loaded.about)
    }

    fn known(self) -> Option<Known> {
        SLOTS.read().unwrap_or_else(PoisonError::into_inner)[self.index()].clone()
    }

    fn set(self, known: Option<Known>) {
        SLOTS.write().unwrap_or_else(PoisonError::into_inner)[self.index()] = known;
    }
}

/// The engine calls it for a flow whose underlay is in the slot.
///
/// # Safety
///
/// `cc` is a live value that nobody else uses; `ack` and `params` are null or live.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn vcc_loaded_hook(
    slot: u32,
    cc: *mut sys::vcc_cc_state,
    ack: *const sys::vcc_cc_ack,
    params: *const sys::vcc_params,
    call: u64,
) -> i32 {
    let known = Slot::from_index(slot).and_then(Slot::known).filter(|known| known.is_there);
    match known {
        // SAFETY: as the engine promises.
        Some(known) => unsafe {
            known.loaded.hooks.run(&mut *cc, ack.as_ref(), params.as_ref(), call)
        },
        // SAFETY: likewise.
        None => unsafe { native::reno_run(cc, ack, params, call) },
    }
    0
}

// Each is as C declares it.
const _: [unsafe extern "C-unwind" fn(
    u32,
    *mut sys::vcc_cc_state,
    *const sys::vcc_cc_ack,
    *const sys::vcc_params,
    u64,
) -> i32; 2] = [vcc_loaded_hook, native::vcc_loaded_hook];

/// Likewise, for `enum vcc_cc_trait`. Of a slot that was emptied, those that its flows were promised.
#[unsafe(no_mangle)]
extern "C-unwind" fn loaded_traits(slot: u32) -> u32 {
    let known = Slot::from_index(slot).and_then(Slot::known);
    known.map_or(sys::CC_CONTROLS, |known| known.loaded.traits)
}

const _: [unsafe extern "C-unwind" fn(u32) -> u32; 2] = [loaded_traits, native::loaded_traits];
