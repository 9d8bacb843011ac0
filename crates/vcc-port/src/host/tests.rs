//! Ports that share a host, without devices.

use libbpf_rs::MapHandle;
use vcc_engine::Params;
use vcc_frames::Packet;
use vcc_policy::Policy;
use vcc_testing::{can_attach, eventually};

use super::*;
use crate::test_run::{self, Context};
use crate::{
    AttachOptions, Datapath, Program, SharedPolicy, Usage, counters, counts, flows, usage,
};

/// Two ports that have the same timer.
const INDICES: [u32; 2] = [3, 3 + 64];
const ONE: usize = 0;
const OTHER: usize = 1;

struct Ports {
    host: Host,
    programs: [Object; 2],
}

impl Ports {
    fn load(room: Room, options: &AttachOptions) -> Self {
        let (host, _) = Host::load(None, room, false).expect("a host");
        let programs = INDICES.map(|index| {
            let generation = host.enter(index, &options.port(false)).expect("room");
            // As many as are asked for, also where the host has room for less.
            let port = sys::vcc_port { generation, ..options.port(false) };
            params::write(&host.maps.ports, index, &port).expect("written");
            host.open_wheel(index).expect("a wheel");
            host.port_programs(index).expect("programs")
        });
        Self { host, programs }
    }

    /// A peer's SYN to the guest of a port.
    fn syn(&self, port: usize, number: u16) {
        let syn = Packet::syn(([198, 51, 100, 1], number).into(), ([192, 0, 2, 1], 80).into());
        let program = object::program(&self.programs[port], "to_guest").expect("a program");
        test_run::run(program.as_fd(), &syn.frame(), Context::default()).expect("it runs");
    }

    fn usage(&self, port: usize) -> Usage {
        usage::read(&self.host.maps.usage, INDICES[port]).expect("usage")
    }

    fn flows(&self, port: usize) -> usize {
        let before = self.usage(port).flows as usize;
        let flows = flows::read(&self.host.maps.flows, INDICES[port]).expect("flows").len();
        let after = self.usage(port).flows as usize;
        // A timer may forget some meanwhile.
        assert!((after..=before).contains(&flows), "{after} {flows} {before}");
        flows
    }

    fn all_flows(&self) -> u32 {
        self.host.connections().expect("a number").0
    }
}

fn room(flows_max: u32) -> Room {
    Room { flows_max, flows_reserved: 4 }
}

#[test]
fn equal_addresses_at_two_ports_are_two_connections() {
    if !can_attach() {
        return;
    }
    let ports = Ports::load(room(100), &AttachOptions::default());
    for number in 1..=3 {
        ports.syn(ONE, number);
    }
    ports.syn(OTHER, 1);
    assert_eq!((ports.flows(ONE), ports.flows(OTHER), ports.all_flows()), (3, 1, 4));
    assert_eq!(ports.host.leave(INDICES[ONE]).expect("left"), 3);
    assert_eq!((ports.flows(ONE), ports.flows(OTHER), ports.all_flows()), (0, 1, 1));
    // A port with the index of one that has gone begins with nothing.
    ports.host.enter(INDICES[ONE], &AttachOptions::default().port(false)).expect("room");
    assert_eq!(ports.usage(ONE), Usage::default());
    ports.syn(ONE, 1);
    assert_eq!((ports.flows(ONE), ports.flows(OTHER)), (1, 1));
}

/// What one port is flooded with takes nothing from another, whose connections stay and find the room
/// that is reserved for them.
#[test]
fn a_port_that_is_flooded_leaves_the_others_their_room() {
    if !can_attach() {
        return;
    }
    let ports = Ports::load(room(8), &AttachOptions::default());
    ports.syn(OTHER, 1);
    for number in 1..=100 {
        ports.syn(ONE, number);
    }
    // Its oldest handshakes have given way to newer ones, and to no other port's.
    assert_eq!((ports.flows(ONE), ports.flows(OTHER)), (7, 1));
    for number in 2..=10 {
        ports.syn(OTHER, number);
    }
    assert_eq!((ports.flows(ONE), ports.flows(OTHER)), (7, 4));
    let gave_way = INDICES.map(|index| {
        let counted = counts::counters(&ports.host.maps.counts, index).expect("counters");
        counted.get(counters::GAVE_WAY)
    });
    assert_eq!(gave_way, [93, 6]);
}

/// A million connections that end at once would have the kernel free their entries at once.
#[test]
fn flows_are_forgotten_in_their_turn() {
    if !can_attach() {
        return;
    }
    /// Centuries pass until it is the next one's turn.
    const MANY: u64 = 1 << 50;
    const PACED_FOR: Duration = Duration::from_millis(50);
    let params = Params::with(|p| p.idle_handshake_ms = 500);
    let ports = Ports::load(room(1000), &AttachOptions::from_params(params));
    let host_usage = &ports.host.maps.host_usage;
    let usage = || {
        let value = host_usage.lookup(&[0; 4], MapFlags::ANY).expect("read").expect("there");
        from_bytes::<sys::vcc_host_usage>(&value).expect("as large")
    };
    let forget_so_many_first = |forgotten| {
        let usage = sys::vcc_host_usage { forgotten, ..usage() };
        host_usage.update(&[0; 4], to_bytes(&usage), MapFlags::ANY).expect("written");
    };
    forget_so_many_first(MANY);
    (1..=3).for_each(|number| ports.syn(ONE, number));
    assert_eq!(usage().forgotten, MANY - 3, "new flows take the entries of forgotten ones");
    let ended = || {
        let wheel = ports.host.maps.wheels.lookup(&INDICES[ONE].to_ne_bytes(), MapFlags::ANY);
        let wheel = wheel.expect("read").expect("a wheel");
        let word = |at: usize| u32::from_ne_bytes(wheel[at..at + 4].try_into().expect("a word"));
        let ends = 4 * size_of::<u32>() + 2 * size_of::<u32>() * sys::QUEUE_ENDED as usize;
        word(ends + 4) - word(ends)
    };
    eventually("they wait", || ended() == 3);
    assert_eq!(ports.flows(ONE), 3);
    forget_so_many_first(0);
    eventually("they are forgotten", || ports.flows(ONE) == 0);
    assert_eq!(ended(), 0);
    // Whoever forgets a port waits, too.
    forget_so_many_first(MANY);
    (1..=3).for_each(|number| ports.syn(ONE, number));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(PACED_FOR);
            forget_so_many_first(0);
        });
        assert_eq!(ports.host.leave(INDICES[ONE]).expect("left"), 3);
    });
    assert_eq!(ports.flows(ONE), 0);
}

/// However many one port wants, it leaves a share of what is free to the others.
#[test]
fn a_port_that_wants_all_leaves_some_to_the_others() {
    if !can_attach() {
        return;
    }
    const FLOWS_MAX: u32 = 330;
    let ports = Ports::load(room(FLOWS_MAX), &AttachOptions::default());
    for number in 1..=1000 {
        ports.syn(ONE, number);
    }
    assert_eq!((ports.flows(ONE), ports.all_flows()), (320, 320), "32 times the ten that are left");
    for number in 1..=1000 {
        ports.syn(OTHER, number);
    }
    assert_eq!((ports.flows(ONE), ports.flows(OTHER)), (320, 10));
}

#[test]
fn a_timer_turns_the_wheels_of_all_its_ports() {
    if !can_attach() {
        return;
    }
    let params = Params::with(|p| p.idle_handshake_ms = 500);
    let ports = Ports::load(room(1000), &AttachOptions::from_params(params));
    for number in 1..=200 {
        ports.syn(ONE, number);
    }
    ports.syn(OTHER, 1);
    eventually("the connection of one port is forgotten", || ports.flows(OTHER) == 0);
    eventually("and those of the other", || ports.flows(ONE) == 0);
    assert_eq!(ports.all_flows(), 0);
    // A port that has left does not stop the other's wheel.
    ports.host.leave(INDICES[ONE]).expect("left");
    ports.syn(OTHER, 2);
    assert_eq!(ports.flows(OTHER), 1);
    eventually("it is forgotten, too", || ports.flows(OTHER) == 0);
}

/// Times are of 32 bits, and those of a wheel that has not turned for weeks seem to be ahead.
#[test]
fn a_wheel_that_stood_for_long_turns_again() {
    if !can_attach() {
        return;
    }
    const AHEAD_MS: u32 = 0x7000_0000;
    let params = Params::with(|p| p.idle_handshake_ms = 500);
    let ports = Ports::load(room(1000), &AttachOptions::from_params(params));
    let index = INDICES[ONE];
    ports.host.leave(index).expect("left");
    let key = index.to_ne_bytes();
    let wheels = &ports.host.maps.wheels;
    let mut wheel = wheels.lookup(&key, MapFlags::ANY).expect("read").expect("a wheel");
    let ahead_ms = (crate::monotonic().as_millis() as u32).wrapping_add(AHEAD_MS);
    for time in wheel[..16].chunks_exact_mut(4) {
        time.copy_from_slice(&ahead_ms.to_ne_bytes());
    }
    wheels.update(&key, &wheel, MapFlags::ANY).expect("written");
    ports.host.enter(index, &AttachOptions::from_params(params).port(false)).expect("room");
    ports.host.open_wheel(index).expect("a wheel");
    ports.syn(ONE, 1);
    assert_eq!(ports.flows(ONE), 1);
    eventually("it is forgotten", || ports.flows(ONE) == 0);
}

/// The wheel serves each deadline that it passes: it leaves no flow behind, whose deadline would
/// come a turn late.
#[test]
fn the_wheel_passes_no_flow() {
    if !can_attach() {
        return;
    }
    const DUE_MS_AT: usize = std::mem::offset_of!(sys::vcc_entry, due_ms);
    // With `emit`, deadlines are kept by the millisecond.
    let params = Params::with(|p| {
        p.emit = 1;
        p.idle_handshake_ms = 500;
    });
    let ports = Ports::load(room(1000), &AttachOptions::from_params(params));
    let maps = &ports.host.maps;
    let word = |bytes: &[u8], at: usize| {
        u32::from_ne_bytes(bytes[at..][..4].try_into().expect("four bytes"))
    };
    for number in 1..=100 {
        ports.syn(ONE, number);
        thread::sleep(Duration::from_millis(1));
    }
    let mut looks = 0;
    while ports.usage(ONE).flows > 0 {
        let wheel = maps.wheels.lookup(&INDICES[ONE].to_ne_bytes(), MapFlags::ANY);
        let passed_ms = word(&wheel.expect("read").expect("a wheel"), 0);
        for key in maps.flows.keys() {
            // It may be forgotten meanwhile.
            let Some(entry) = maps.flows.lookup(&key, MapFlags::ANY).expect("read") else {
                continue;
            };
            let ahead_ms = word(&entry, DUE_MS_AT).wrapping_sub(passed_ms) as i32;
            assert!(ahead_ms >= 0, "a flow was due {} ms before the wheel", -ahead_ms);
            looks += 1;
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert!(looks > 100, "{looks} looks at flows");
}

/// As while the host is suspended, or no timer can be started. The near ring is not empty then.
#[test]
fn a_near_deadline_is_met_after_the_wheel_stood_for_longer_than_a_turn_of_the_ring() {
    if !can_attach() {
        return;
    }
    const STOOD_MS: u32 = 1100;
    /// The wheel was so far from the deadline's slot.
    const AHEAD_MS: u32 = 5;
    const ENDS_AT: usize = 4 * size_of::<u32>();
    const DUE_AT: usize = std::mem::offset_of!(sys::vcc_entry, due);
    const KEY_AT: usize = std::mem::offset_of!(sys::vcc_entry, key);
    const DUE_MS_AT: usize = std::mem::offset_of!(sys::vcc_entry, due_ms);
    let params = Params::with(|p| p.idle_handshake_ms = 500);
    let ports = Ports::load(room(1000), &AttachOptions::from_params(params));
    let (index, maps) = (INDICES[ONE], &ports.host.maps);
    ports.syn(ONE, 1);
    sweep::close(ports.host.programs.sweep(), index).expect("closed");
    thread::sleep(Duration::from_millis(20));

    // The flow moves to a near slot.
    let passed_ms = (crate::monotonic().as_millis() as u32).wrapping_sub(STOOD_MS);
    let due_ms = passed_ms.wrapping_add(AHEAD_MS);
    let slot = due_ms % sys::NEAR_SLOTS;
    let read = |map: &MapHandle, key: &[u8]| {
        map.lookup(key, MapFlags::ANY).expect("read").expect("it is there")
    };
    let write = |map: &MapHandle, key: &[u8], value: &[u8]| {
        map.update(key, value, MapFlags::ANY).expect("written");
    };
    let set = |value: &mut [u8], at: usize, number: u32| {
        value[at..][..4].copy_from_slice(&number.to_ne_bytes());
    };
    let mut wheel = read(&maps.wheels, &index.to_ne_bytes());
    let ends_at = ENDS_AT + size_of::<[u32; 2]>() * slot as usize;
    for (at, number) in [(0, passed_ms), (4, due_ms), (ends_at, 0), (ends_at + 4, 1)] {
        set(&mut wheel, at, number);
    }
    write(&maps.wheels, &index.to_ne_bytes(), &wheel);
    let flow = maps.flows.keys().next().expect("a flow");
    let mut entry = read(&maps.flows, &flow);
    maps.queued.delete(&entry[DUE_AT..][..8]).expect("its place");
    set(&mut entry, DUE_MS_AT, due_ms);
    set(&mut entry, DUE_AT, index << 16 | slot);
    set(&mut entry, DUE_AT + 4, 0);
    write(&maps.queued, &entry[DUE_AT..][..8], &entry[KEY_AT..][..size_of::<sys::vcc_key>()]);
    write(&maps.flows, &flow, &entry);

    ports.host.renew_wheel(index).expect("a wheel");
    eventually("it is forgotten", || ports.flows(ONE) == 0);
}

/// A handshake under the edition that is about to be overwritten would be treated by another rule.
#[test]
fn settling_waits_for_a_flow_that_a_cpu_holds() {
    if !can_attach() {
        return;
    }
    const HELD_FOR: Duration = Duration::from_millis(50);
    let policy = |text: &str| Policy::parse(text, "policy").expect("valid").policy;
    let shared = SharedPolicy::unpinned().expect("a policy");
    let apply = |text| shared.apply(&policy(text), &[(0, None.into())]).expect("applied");
    apply("[default]\nunderlay = \"dctcp\"");
    let datapath = Datapath::load_under(&shared, 0, &AttachOptions::default()).expect("a datapath");
    let syn = Packet::syn(([198, 51, 100, 1], 1).into(), ([192, 0, 2, 1], 80).into());
    datapath.run(Program::ToGuest, &syn.frame(), 0).expect("it runs");
    let epoch = apply("[default]\nunderlay = \"cubic\"");
    let flows = &datapath.maps().flows;
    let key = flows.keys().next().expect("a flow");
    let set_lock = |lock: u32| {
        let mut entry = flows.lookup(&key, MapFlags::ANY).expect("read").expect("there");
        entry[..4].copy_from_slice(&lock.to_ne_bytes());
        flows.update(&key, &entry, MapFlags::ANY).expect("written");
    };
    set_lock(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(HELD_FOR);
            set_lock(0);
        });
        assert_eq!(datapath.settle_flows().expect("settled"), 1);
    });
    assert_eq!(u32::from(datapath.flows().expect("flows")[0].state.epoch), epoch);
}

#[test]
fn other_programs_do_not_stop_the_wheels() {
    if !can_attach() {
        return;
    }
    // Longer than it takes to load programs on a busy machine.
    let params = Params::with(|p| p.idle_handshake_ms = 8_000);
    let ports = Ports::load(room(1000), &AttachOptions::from_params(params));
    ports.syn(ONE, 1);
    let again = Programs::from_object(
        &load::over(&ports.host.maps, None, &Underlays::default()).expect("loaded"),
    )
    .expect("programs");
    let before = ports.host.programs.tags().expect("tags");
    assert_eq!(again.tags().expect("tags"), before);
    let Ports { host: Host { maps, .. }, programs } = ports;
    let ports = Ports {
        host: Host { maps, programs: again, is_pinned: false, is_new: false, turning: None },
        programs,
    };
    ports.host.call().expect("called");
    ports.syn(ONE, 2);
    for index in INDICES {
        ports.host.renew_wheel(index).expect("a wheel");
        ports.host.sweep(index, Sweep::Judge).expect("judged");
    }
    assert_eq!(ports.flows(ONE), 2);
    eventually("all are forgotten", || ports.flows(ONE) == 0);
}
