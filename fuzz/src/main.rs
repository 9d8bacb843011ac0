//! The fuzzer: libFuzzer around the target that `VCC_FUZZ_TARGET` names.
#![no_main]

use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use vcc_fuzz::{TARGETS, Target, steps};

static TARGET: OnceLock<&Target> = OnceLock::new();
/// Ends after so many steps; VCC_FUZZ_STEPS has the number, or 0 for no end.
static MOST_STEPS: AtomicU64 = AtomicU64::new(u64::MAX);

extern "C" fn tell_steps() {
    eprintln!("stat::steps: {}", steps());
}

fn init() {
    let name = env::var("VCC_FUZZ_TARGET").expect("VCC_FUZZ_TARGET names a target");
    let target = TARGETS.iter().find(|target| target.name == name);
    let target =
        target.unwrap_or_else(|| panic!("VCC_FUZZ_TARGET={name}: there is no such target"));
    TARGET.get_or_init(|| target);
    let most =
        env::var("VCC_FUZZ_STEPS").map(|most| most.parse().expect("VCC_FUZZ_STEPS: a number"));
    if let Ok(most @ 1..) = most {
        MOST_STEPS.store(most, Ordering::Relaxed);
    }
    // SAFETY: a function without arguments, which lives as long as the process.
    assert_eq!(unsafe { libc::atexit(tell_steps) }, 0);
}

libfuzzer_sys::fuzz_target!(init: init(), |input: &[u8]| {
    (TARGET.get().expect("init() ran").run)(input);
    if steps() >= MOST_STEPS.load(Ordering::Relaxed) {
        MOST_STEPS.store(u64::MAX, Ordering::Relaxed);
        tell_steps();
        // libFuzzer's way to end early without a find.
        // SAFETY: its handler only sets a flag.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
});
