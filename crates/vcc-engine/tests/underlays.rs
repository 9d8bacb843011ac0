//! Names of underlays, modes and treatments.

use std::collections::HashSet;

use vcc_engine::{GuestEcn, Mode, Params, Underlay, sys};

#[test]
fn underlays_have_unique_names_and_numbers() {
    let all: Vec<Underlay> = Underlay::all().collect();
    assert_eq!(all.len(), sys::UNDERLAY_COUNT as usize);
    let names: HashSet<&str> = all.iter().map(|underlay| underlay.name()).collect();
    assert_eq!(names.len(), all.len());
    for (number, underlay) in all.iter().enumerate() {
        assert_eq!(usize::from(underlay.number()), number);
        assert_eq!(Underlay::from_number(number as u8), Some(*underlay));
        // Users type these.
        assert!(underlay.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
        assert!(!underlay.name().is_empty());
    }
    assert_eq!(Underlay::from_number(all.len() as u8), None);
    assert_eq!(Underlay::from_number(u8::MAX), None);
}

#[test]
fn underlays_parse_from_their_names() {
    for underlay in Underlay::all() {
        assert_eq!(underlay.to_string().parse(), Ok(underlay));
    }
    for name in ["transparent", "reno", "reno-ecn"] {
        assert!(name.parse::<Underlay>().is_ok(), "{name}");
    }
    assert_eq!(Underlay::default().name(), "reno-ecn");
}

#[test]
fn numbers_are_stable() {
    // They are in the state of live flows: the list is append-only.
    let names =
        ["transparent", "reno", "reno-ecn", "dctcp", "dctcp-priority", "cubic", "vegas", "swift"];
    let numbers = names.map(|name| name.parse::<Underlay>().unwrap().number());
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    for name in ["dctcp-of-tomorrow", "", "Reno", "reno-ecn "] {
        let error = name.parse::<Underlay>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("unknown underlay '{name}': known are ")), "{error}");
        for underlay in Underlay::all() {
            assert!(error.contains(underlay.name()), "{error}");
        }
        assert!(!error.contains('\n'));
    }
    assert_eq!(
        "on".parse::<Mode>().unwrap_err().to_string(),
        "unknown mode 'on': known are enforce, shadow, drain, ignore"
    );
    assert_eq!(
        "keep".parse::<GuestEcn>().unwrap_err().to_string(),
        "unknown treatment of a guest's ECN 'keep': known are leave, override"
    );
}

#[test]
fn modes_and_treatments_round_trip() {
    for mode in [Mode::Enforce, Mode::Shadow, Mode::Drain, Mode::Ignore] {
        assert_eq!(mode.to_string().parse(), Ok(mode));
        assert_eq!(Mode::from_number(mode.number()), Some(mode));
    }
    assert_eq!(Mode::from_number(4), None);
    for treatment in [GuestEcn::Leave, GuestEcn::Override] {
        assert_eq!(treatment.to_string().parse(), Ok(treatment));
        assert_eq!(GuestEcn::from_number(treatment.number()), Some(treatment));
    }
    assert_eq!(GuestEcn::from_number(2), None);
}

#[test]
fn names_can_be_padded() {
    assert_eq!(format!("[{:>9}]", Mode::Shadow), "[   shadow]");
    assert_eq!(format!("[{:<9}]", Underlay::default()), "[reno-ecn ]");
}

#[test]
fn the_defaults() {
    let defaults = Params::default().0;
    assert_eq!(defaults.underlay, Underlay::default().number());
    assert_eq!(defaults.mode, Mode::Enforce.number());
    assert_eq!(defaults.guest_ecn, GuestEcn::Leave.number());
    assert_eq!((defaults.prr, defaults.pace_push), (1, 1));
    assert_eq!(defaults.window_floor_segs, 1);
    assert_eq!(defaults.initial_window_segs, 10, "RFC 6928");
}

#[test]
fn the_state_is_small() {
    // A map entry per connection, which the kernel allocates from blocks of 512 bytes, has it with
    // its key, its lock and its places in queues.
    let bytes = size_of::<vcc_engine::FlowState>();
    assert!(bytes <= 336, "{bytes} bytes");
}
