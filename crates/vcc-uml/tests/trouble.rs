//! Guests that panic, spin, never end or cannot boot.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use vcc_testing::can_attach;
use vcc_uml::{
    CardSpec, Delivery, Error, GuestSpec, Kernel, Network, Release, Watch, World, WorldSpec,
};

/// A network that delivers no frames.
struct Nothing;

impl Network for Nothing {
    fn lookahead_ns(&self) -> u64 {
        1
    }

    fn inject(&mut self, _: usize, _: u64, _: Vec<u8>) {}

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn next_delivery(&mut self, _: u64) -> Option<Delivery> {
        None
    }
}

/// The guest kernel; building it needs Debian packages, hence root.
fn kernel() -> Option<Kernel> {
    can_attach().then(|| Kernel::find_or_build(Release::V6_12).expect("a kernel"))
}

fn spec() -> GuestSpec {
    GuestSpec {
        kernel: None,
        memory_mib: 64,
        plan: String::new(),
        card: CardSpec {
            mac: [2, 0, 0, 0, 0, 1],
            mtu_bytes: 1500,
            rate_bps: 1_000_000_000,
            interrupt_every_ns: 0,
            seed: 0,
            backlog_segs: 0,
            port: None,
            changes: Default::default(),
            tamper: None,
        },
        small_queues: true,
        vcpu: None,
    }
}

/// Boots one guest with this program and runs it to its end.
fn run(kernel: &Kernel, init: &[u8], watch: &Watch) -> Result<String, Error> {
    let spec = WorldSpec { guests: vec![spec()], cores: Vec::new() };
    let mut world = World::boot(kernel, init, spec, watch)?;
    world.run(&mut Nothing, watch, &mut |_| {})?;
    Ok(world.console(0))
}

const NEVER: Watch =
    Watch { interrupted: &|| false, patience: Duration::from_secs(30), ends_by_ns: 60_000_000_000 };

/// An ELF program of these x86_64 instructions only.
fn program(code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS_BYTES: u64 = 64 + 56;
    let half = |value: u16| value.to_le_bytes().to_vec();
    let word = |value: u32| value.to_le_bytes().to_vec();
    let long = |value: u64| value.to_le_bytes().to_vec();
    let bytes = HEADERS_BYTES + code.len() as u64;
    [
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
        [half(2), half(62), word(1), long(BASE + HEADERS_BYTES), long(64), long(0)].concat(),
        [word(0), half(64), half(56), half(1), half(0), half(0), half(0)].concat(),
        [word(1), word(5), long(0), long(BASE), long(BASE), long(bytes), long(bytes)].concat(),
        long(0x1000),
        code.to_vec(),
    ]
    .concat()
}

#[test]
fn a_panic_ends_a_guest_and_is_on_its_console() {
    let Some(kernel) = kernel() else { return };
    let console = run(&kernel, b"no program", &NEVER).expect("an end");
    assert!(console.contains("Kernel panic"), "{console}");
}

#[test]
fn a_spinning_guest_is_reported_with_its_time() {
    let Some(kernel) = kernel() else { return };
    let patience = Duration::from_secs(6);
    let jump_to_itself = program(&[0xeb, 0xfe]);
    let watch = Watch { patience, ..NEVER };
    let error = run(&kernel, &jump_to_itself, &watch).expect_err("no end");
    assert!(matches!(error, Error::Spins { guest: 0, wall_s: 6, .. }), "{error}");
}

/// Its time advances, so it does not spin, but it never ends.
#[test]
fn a_guest_that_never_ends_is_reported() {
    let Some(kernel) = kernel() else { return };
    let nanosleep_1s_forever = program(
        &[
            &[0xb8, 35, 0, 0, 0][..],        // mov $SYS_nanosleep, %eax
            &[0x48, 0x8d, 0x3d, 6, 0, 0, 0], // lea 6(%rip), %rdi
            &[0x31, 0xf6, 0x0f, 0x05],       // xor %esi, %esi; syscall
            &[0xeb, 0xee],                   // jmp to the start
            &1_u64.to_le_bytes(),
            &0_u64.to_le_bytes(),
        ]
        .concat(),
    );
    let error = run(&kernel, &nanosleep_1s_forever, &NEVER).expect_err("no end");
    let Error::Overdue { guest: 0, virtual_ns, .. } = error else { panic!("{error}") };
    assert!((60_000_000_000..62_000_000_000).contains(&virtual_ns), "{virtual_ns}");
}

#[test]
fn a_run_can_be_interrupted_while_guests_boot() {
    let Some(kernel) = kernel() else { return };
    let asked = Cell::new(0);
    let interrupted = || {
        asked.set(asked.get() + 1);
        asked.get() > 20
    };
    let watch = Watch { interrupted: &interrupted, ..NEVER };
    let error = run(&kernel, &program(&[0xeb, 0xfe]), &watch).expect_err("no end");
    assert!(matches!(error, Error::Interrupted), "{error}");
}

#[test]
fn an_invalid_kernel_is_reported() {
    let Some(_) = kernel() else { return };
    let kernel = Kernel::at(PathBuf::from("/bin/true"));
    let error = run(&kernel, &program(&[0xeb, 0xfe]), &NEVER).expect_err("no guest");
    assert!(matches!(error, Error::DidNotBoot { guest: 0, .. }), "{error}");
}
