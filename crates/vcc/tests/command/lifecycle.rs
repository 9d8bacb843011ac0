use std::process::Command;

use serde_json::Value;
use vcc_engine::{GuestEcn, Params, export};
use vcc_port::Port;
use vcc_testing::{guest, ip, on_a_host};

use crate::wire::{connect, connect_to, exchange, neighbour};
use crate::{CommandOutput, vcc};

fn flows() -> Vec<Value> {
    let json = vcc("flows --json").well();
    serde_json::from_str(&json).expect("an array")
}

#[test]
fn attach_watch_detach() {
    on_a_host(|| {
        let guest = guest();
        assert_eq!(vcc("attach port").well(), "attached to port: reno-ecn, in enforce mode\n");
        assert_eq!(flows(), Vec::<Value>::new());

        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        let [flow] = &flows()[..] else { panic!("one connection") };
        let addresses = [from_guest.local_addr(), from_guest.peer_addr()];
        let [here, there] = addresses.map(|address| address.expect("an address").to_string());
        assert_eq!((&flow["guest"], &flow["peer"]), (&here.into(), &there.into()));
        assert_eq!(flow["stage"], "established");
        // The kernel's default: it accepts ECN, and does not ask for it.
        assert_eq!((&flow["ecn_guest"], &flow["ecn_fabric"]), (&"no".into(), &"yes".into()));
        assert!(flow["cwnd_segs"].as_u64() >= Some(10), "{flow}");
        assert_eq!(flow["marks"], 0);
        // Two CPUs may hand segments over in another order; else nothing reduces the window.
        assert!(flow["reductions"] == 0 || flow["retransmissions"] != 0, "{flow}");
        // The host's end is not under vcc.
        assert_eq!((&flow["feedback"], &flow["alpha"]), (&"none".into(), &Value::Null));
        assert_eq!((&flow["policed"], &flow["forged"]), (&0.into(), &0.into()));
        assert_eq!(flow["heard_ce_bytes"], Value::Null);
        let table = vcc("flows port").well();
        assert!(table.starts_with("PORT") && table.contains("192.0.2.2"), "{table}");
        let ports = vcc("ports").well();
        assert!(ports.starts_with("port: reno-ecn, enforce, 1 of 65536 connections\n"), "{ports}");

        let printed = vcc("detach --now port").well();
        let slow =
            "; 1 connection(s) now read windows at the wrong scale and will be slow until they end";
        let marked = "; 1 connection(s) receive data whose marks nobody echoes to the peer any more until they end";
        assert_eq!(printed, format!("detached from port{slow}{marked}\n"));
        assert_eq!(vcc("ports").well(), "vcc is attached nowhere\n");
    });
}

/// A connection inside a tunnel comes to a port that looks into none, and then to one that does.
#[test]
fn import_reports_connections_that_no_segment_would_reach() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let _connection = connect(&guest);
        let exported = export::read(&vcc("export port").well()).expect("connections");
        let [plain] = &exported[..] else { panic!("{} connections", exported.len()) };
        let inside = export::Connection { inside: true, ..plain.clone() };
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("both");
        let both = export::write("vcc", "port", &[plain.clone(), inside]);
        // Bytes that are no text are not read as if they were.
        let mut changed = both.clone().into_bytes();
        let last = changed.len() - "0}\n".len();
        changed[last - 200] = 0xff;
        std::fs::write(&file, changed).expect("a file");
        vcc("detach --now port").well();
        vcc("attach port").well();
        let complaint = vcc(&format!("import port {}", file.display())).complaint(1);
        assert!(complaint.contains("has been changed"), "{complaint}");
        std::fs::write(&file, both).expect("a file");
        let printed = vcc(&format!("import port {}", file.display()));
        assert_eq!(printed.code, 1);
        let why = "port: of 192.0.2.1: 1 connection taken over; 1 inside tunnels, into which the port does \
                   not look";
        assert!(printed.stdout.contains(why), "{}", printed.stdout);
        assert_eq!(flows().len(), 1);
        vcc("detach --now port").well();
        vcc("attach port --inside vxlan").well();
        let printed = vcc(&format!("import port {}", file.display())).well();
        assert!(printed.contains("2 connections taken over"), "{printed}");
    });
}

#[test]
fn a_low_limit_of_open_files_does_not_limit_ports() {
    on_a_host(|| {
        let (_guest, _other) = (guest(), neighbour());
        vcc("attach port other").well();
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -S -n 24; exec \"$0\" ports", env!("CARGO_BIN_EXE_vcc")]);
        let ports = CommandOutput::from(shell.output().expect("a shell")).well();
        assert!(ports.contains("port: ") && ports.contains("other: "), "{ports}");
    });
}

#[test]
fn two_ends_under_vcc_report_bytes_to_each_other() {
    on_a_host(|| {
        let (guest, other) = (guest(), neighbour());
        vcc("attach port other --underlay dctcp").well();
        let (mut here, mut there) = connect_to(&guest, &other, "192.0.2.3:0");
        exchange(&mut here, &mut there);
        let flows = flows();
        assert_eq!(flows.len(), 2, "{flows:?}");
        for flow in &flows {
            assert_eq!(flow["feedback"], "agreed", "{flow}");
            assert!(flow["alpha"].as_f64() < Some(1.0), "{flow}");
            assert_eq!(
                (&flow["heard_ce_bytes"], &flow["counted_ce_bytes"]),
                (&0.into(), &0.into())
            );
            assert!(flow["heard_ect0_bytes"].as_u64() > Some(1 << 16), "{flow}");
            assert!(flow["counted_ect0_bytes"].as_u64() > Some(1 << 16), "{flow}");
        }
    });
}

#[test]
fn detaching_waits_for_connections_that_need_vcc() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);

        let printed = vcc("detach port").well();
        let name =
            format!("{}-{}", from_guest.local_addr().unwrap(), from_guest.peer_addr().unwrap());
        let reason = format!("draining: 1 connection still depends on vcc ({name})");
        assert!(printed.contains(&reason), "{printed}");
        let complaint = vcc("detach port --wait --timeout 0").complaint(1);
        assert!(complaint.contains(&reason), "{complaint}");
        exchange(&mut from_guest, &mut to_guest);

        let (mut new_guest, mut new_host) = connect(&guest);
        exchange(&mut new_guest, &mut new_host);
        assert_eq!(flows().len(), 1, "a draining port takes no new connection");

        drop((from_guest, to_guest));
        assert_eq!(vcc("detach port --wait --timeout 60").well(), "detached from port\n");
        exchange(&mut new_guest, &mut new_host);
    });
}

#[test]
fn a_ports_treatment_changes_under_its_connections() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --mode shadow --window-floor-segments 2").well();
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        let flow = || flows().pop().expect("a connection");
        assert_eq!((&flow()["mode"], &flow()["underlay"]), (&"shadow".into(), &"reno-ecn".into()));

        let refused = vcc("set port --mode enforce --rto-min 10ms --emit-after 1ms").complaint(1);
        assert!(refused.contains("--emit-after has no effect without --emit"), "{refused}");
        assert_eq!(flow()["mode"], "shadow", "nothing has changed");

        let changed =
            vcc("set port --mode enforce --underlay cubic --window-cap 8K --guest-ecn override")
                .well();
        assert_eq!(changed, "port: cubic, in enforce mode; 1 connection follows\n");
        exchange(&mut here, &mut there);
        exchange(&mut here, &mut there);
        let shown = flow();
        assert_eq!((&shown["mode"], &shown["underlay"]), (&"enforce".into(), &"cubic".into()));
        assert!(
            shown["window_shown_bytes"].as_u64().is_some_and(|bytes| bytes <= 8 << 10),
            "{shown}"
        );
        // Other options stay as they were.
        let kept = vcc("set port --window-floor-segments 99 --window-cap 16K").complaint(1);
        assert!(kept.contains("exceeds --window-cap 16K"), "{kept}");

        let attached = vcc("attach port").complaint(1);
        assert!(attached.contains("`vcc set port` changes its treatment"), "{attached}");
        assert!(vcc("set port").complaint(2).contains("were not provided"), "an option is needed");
        assert!(vcc("set lo --mode enforce").complaint(1).contains("not attached to `lo`"));
        // One that depends on vcc.
        let (mut new_here, mut new_there) = connect(&guest);
        exchange(&mut new_here, &mut new_there);
        vcc("detach port").well();
        let draining = vcc("set port --mode enforce").complaint(1);
        assert!(draining.contains("port is draining"), "{draining}");
    });
}

#[test]
fn a_device_joins_the_port_of_its_guest() {
    on_a_host(|| {
        let guest = guest();
        ip("link add second type veth peer name second-guest");
        let join = |options: &str| vcc(&format!("attach second --same-guest-as port{options}"));
        let complaint = join("").complaint(1);
        assert!(complaint.starts_with("vcc is not attached to `port`"), "{complaint}");
        vcc("attach port --underlay dctcp").well();
        let complaint = join(" --underlay dctcp").complaint(2);
        assert!(complaint.contains("--same-guest-as"), "the port has its treatment: {complaint}");
        assert_eq!(join(" --order first").well(), "attached to second: one port with port\n");
        assert!(join("").complaint(1).contains("already attached to `second`"));

        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        let ports = vcc("ports").well();
        assert!(
            ports.contains("port: dctcp, enforce, 1 of 65536 connections, one port with second\n")
        );
        assert!(
            ports.contains("second: shares the port of port; its counters are listed there\n"),
            "{ports}"
        );
        assert_eq!(flows().len(), 1);
        let guests = vcc("guests --seconds 0.1").well();
        assert!(!guests.contains("second "), "the guest is listed once: {guests}");
        let trace = "trace 192.0.2.1 --duration 0.1";
        assert!(vcc(trace).well().starts_with("time"), "one connection matches");
        vcc(&format!("{trace} --device second")).well();

        let complaint = vcc("detach second").complaint(1);
        let advice = "`vcc detach second port`, or `vcc detach --now second`";
        assert!(complaint.contains(advice), "{complaint}");
        let printed = vcc("detach --now second").well();
        assert!(
            printed.starts_with("detached from second; the port keeps its connections at port"),
            "{printed}"
        );
        exchange(&mut from_guest, &mut to_guest);
        join("").well();
        drop((from_guest, to_guest));
        let printed = vcc("detach second port --wait").well();
        assert!(printed.ends_with("detached from port\n"), "{printed}");
        assert_eq!(vcc("ports").well(), "vcc is attached nowhere\n");
    });
}

#[test]
fn attaching_again_ends_the_draining() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut from_guest, mut to_guest) = connect(&guest);
        assert!(vcc("detach port").well().contains("draining: 1 connection"));
        assert_eq!(
            vcc("attach port").well(),
            "port is no longer draining: reno-ecn, in enforce mode\n"
        );
        assert!(vcc("attach port").complaint(1).contains("already attached"));

        let (mut new_guest, mut new_host) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        exchange(&mut new_guest, &mut new_host);
        assert_eq!(flows().len(), 2, "the new connection is taken");
    });
}

#[test]
fn what_is_asked_for_reaches_the_port() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        let params = |arguments: &str| {
            vcc(&format!("attach port {arguments}")).well();
            let params = Port::open("port").expect("open").params().expect("parameters").0;
            vcc("detach port").well();
            params
        };
        let default = params("");
        assert_eq!((default.feedback, default.police, default.emit), (1, 0, 0));
        assert_eq!((default.window_cap_bytes, default.rate_cap_bytes_per_ms), (0, 0));
        assert_eq!(default, Params::default().0);

        let set = params(
            "--feedback=false --police --window-cap 100K --rate-cap 1G --window-floor-segments 2 \
             --guest-ecn override",
        );
        assert_eq!((set.feedback, set.police), (0, 1));
        assert_eq!((set.window_cap_bytes, set.rate_cap_bytes_per_ms), (102_400, 125_000));
        assert_eq!(set.window_floor_segs, 2);
        let set = params("--emit --emit-after 25ms --underlay dctcp-priority --priority 0.25");
        assert_eq!((set.emit, set.emit_after_us, set.beta_1024), (1, 25_000, 256));
        let set = params("--police=false --rto-min 10ms --idle-closed 30s --guest-ecn override");
        assert_eq!((set.police, set.guest_ecn), (0, GuestEcn::Override.number()));
        assert_eq!((set.rto_min_us, set.idle_closed_ms), (10_000, 30_000));
    });
}

#[test]
fn limits_that_a_guest_escapes_are_warned_of() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        let printed = vcc("attach port --police --window-cap 100K");
        assert_eq!(
            (printed.code, printed.stdout.as_str()),
            (0, "attached to port: reno-ecn, in enforce mode\n")
        );
        let expected = "vcc: warning: --window-cap, --police do not bind a guest that negotiates \
            ECN itself: its connections are left alone without --guest-ecn override\n";
        assert_eq!(printed.stderr, expected);
    });
}

#[test]
fn shadow_mode_changes_nothing() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach --mode shadow port").well();
        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        let [flow] = &flows()[..] else { panic!("one connection") };
        assert_eq!(flow["ecn_fabric"], "no");
        // Nothing depends on vcc, so nothing has to be waited for.
        assert_eq!(vcc("detach port").well(), "detached from port\n");
    });
}

#[test]
fn a_gone_device_is_forgotten_with_a_word() {
    on_a_host(|| {
        let _guest = guest();
        vcc("attach port").well();
        ip("link delete port");
        let printed = vcc("ports");
        assert_eq!((printed.code, printed.stdout.as_str()), (0, "vcc is attached nowhere\n"));
        assert!(printed.stderr.contains("removed the pinned maps of `port`"), "{}", printed.stderr);
        vcc("ports").well();
    });
}
