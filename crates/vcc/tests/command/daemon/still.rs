//! Where the kernel has no timers for BPF programs, as with PREEMPT_RT, the daemon turns the wheels.

use std::process::Command;
use std::thread;
use std::time::Duration;

use vcc_port::Port;
use vcc_testing::{eventually, guest, on_a_host};

use super::Place;
use crate::CommandOutput;
use crate::wire::{connect, exchange};

const POLICY: &str = "[[ports]]\ndevice = \"port*\"\n[default]\nmode = \"enforce\"\nunderlay = \"reno-ecn\"\n\
                      idle_closed = \"1s\"\n";
const OTHERS: &str = "[[ports]]\ndevice = \"other*\"\n[default]\nmode = \"ignore\"\n";

fn without_timers(place: &Place) -> Command {
    let mut command = place.command();
    command.env("VCC_AS_PREEMPT_RT", "1");
    command
}

fn vcc(place: &Place, arguments: &str) -> CommandOutput {
    let mut command = without_timers(place);
    command.args(arguments.split(' ')).output().expect("the command").into()
}

fn flows() -> usize {
    Port::open("port").expect("a port").flows().expect("flows").len()
}

#[test]
fn what_has_ended_is_forgotten_while_the_daemon_is_up() {
    on_a_host(|| {
        let place = Place::new("still", POLICY);
        let guest = guest();
        let mut daemon = place.run_by(without_timers(&place));
        daemon.is_ready();
        assert!(vcc(&place, "doctor").stdout.contains("the daemon does the timers' work"));
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        drop((one, other));
        eventually("what has ended is forgotten", || flows() == 0);

        let (mut one, mut other) = connect(&guest);
        daemon.kill();
        exchange(&mut one, &mut other);
        drop((one, other));
        let complaint = vcc(&place, "status").complaint(1);
        assert!(complaint.starts_with("no daemon listens "), "{complaint}");
        assert!(
            complaint.ends_with("ended connections of this host's ports are not removed"),
            "{complaint}"
        );
        let doctor = vcc(&place, "doctor");
        assert_eq!(doctor.code, 1, "{}", doctor.stdout);
        assert!(doctor.stdout.contains("no daemon is up: connections"), "{}", doctor.stdout);
        thread::sleep(Duration::from_secs(3));
        assert_eq!(flows(), 1, "nobody forgets it");
        let daemon = place.run_by(without_timers(&place));
        daemon.is_ready();
        eventually("the next daemon forgets it", || flows() == 0);
    });
}

#[test]
fn a_port_is_attached_by_hand_only_beside_the_daemon() {
    on_a_host(|| {
        let place = Place::new("by-hand", OTHERS);
        let guest = guest();
        let complaint = vcc(&place, "attach port").complaint(1);
        assert!(complaint.contains(" gives BPF programs no timers, so "), "{complaint}");
        assert!(complaint.ends_with("start `vcc run`, then attach"), "{complaint}");
        assert!(Port::list().expect("a list").is_empty());

        let daemon = place.run_by(without_timers(&place));
        daemon.is_ready();
        vcc(&place, "attach port --idle-closed 1s").well();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        assert_eq!(flows(), 1);
        drop((one, other));
        eventually("what has ended is forgotten", || flows() == 0);
    });
}
