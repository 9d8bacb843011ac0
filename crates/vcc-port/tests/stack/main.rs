//! The stack of the shipped programs, without a kernel. The verifier adds up the frames of each chain of
//! calls and refuses one beyond 512 bytes. It rounds each frame up to 32 bytes before Linux 6.9, and to
//! 16 since then where there is a JIT.

mod frames;

use std::collections::BTreeMap;

use frames::{Function, Place, functions};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vcc.bpf.o"));

/// 64 bytes are left for compilers that use more than this one.
const MAX_BYTES: u32 = 448;
const ROUNDING_BYTES: u32 = 32;
/// The kernel calls it from a timer, on a stack of its own (bpf_timer_set_callback).
const BEGINS_A_STACK: &str = "timer_run";

/// At least one unit, which is also what an underlay's code may use that takes a slot's place.
fn rounded(bytes: u32) -> u32 {
    bytes.max(1).next_multiple_of(ROUNDING_BYTES)
}

/// Bytes and names of the deepest chain that begins with a function.
fn deepest(
    functions: &BTreeMap<Place, Function>,
    calls: impl Fn(&Function) -> Vec<Place> + Copy,
    from: Place,
) -> (u32, String) {
    let function = &functions[&from];
    let below = calls(function).into_iter().map(|place| deepest(functions, calls, place));
    let (bytes, names) = below.max().unwrap_or_default();
    let arrow = if names.is_empty() { "" } else { " -> " };
    let name = format!("{}:{}{arrow}{names}", function.name, function.frame_bytes);
    (rounded(function.frame_bytes) + bytes, name)
}

#[test]
fn each_chain_of_calls_leaves_room_on_the_stack_of_the_oldest_kernels() {
    let functions = functions(OBJECT);
    let begins = |function: &Function| function.is_program || function.name == BEGINS_A_STACK;
    let calls = |function: &Function| {
        let callbacks = function.callbacks.iter().filter(|place| !begins(&functions[place]));
        function.calls.iter().chain(callbacks).copied().collect()
    };
    let mut programs = 0;
    for (place, function) in functions.iter().filter(|(_, function)| begins(function)) {
        let (bytes, chain) = deepest(&functions, calls, *place);
        assert!(bytes <= MAX_BYTES, "{bytes} of {MAX_BYTES} bytes of stack: {chain}");
        programs += u32::from(function.is_program);
    }
    assert!(programs >= 8, "{programs} programs were read");
}

/// Does the check see calls of static functions, of global ones, and callbacks?
#[test]
fn chains_have_all_kinds_of_calls() {
    let functions = functions(OBJECT);
    let calls = |from: &str, to: &str| {
        let from = functions.values().find(|it| it.name == from).expect("a function");
        let called = from.calls.iter().chain(&from.callbacks);
        called.map(|place| &functions[place].name).any(|name| name == to)
    };
    assert!(calls("parse_options", "option_step"), "a callback");
    assert!(calls("let_go", "flow_forget"), "a global function");
    assert!(calls("fast_to_guest", "let_go"), "a static function");
}
