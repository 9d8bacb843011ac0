//! Another policy comes into force, or does not.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use vcc_port::{Netns, Port, counters};
use vcc_testing::{EndOnDrop, eventually, guest, ip, on_a_host};
use vcc_traffic::TcpInfo;

use super::{POLICY, Place};
use crate::vcc;
use crate::wire::{connect, ends, exchange};

/// Rules with tenants, of which the daemon, and without it the kernel, give the same answer.
#[test]
fn a_live_connection_is_explained_by_the_rule_that_it_is_under() {
    on_a_host(|| {
        let rules = "[[ports]]\ndevice = \"port\"\ntenant = \"acme\"\n\
                     [[ports]]\ndevice = \"other\"\ntenant = \"umbrella\"\n\
                     [[rules]]\nname = \"theirs\"\ntenant = \"umbrella\"\n\
                     [[rules]]\nname = \"ours\"\ntenant = \"acme\"\nunderlay = \"dctcp\"\nrole = \"client\"\n\
                     peer = \"192.0.2.0/24\"\n\
                     [default]\nmode = \"shadow\"\n";
        let place = Place::new("explained", rules);
        let guest = guest();
        ip("link add other type veth peer name others-guest");
        let mut daemon = place.run();
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let [here, there] = ends(&one);
        let line = format!("explain {here} {there}");
        let output = place.vcc(&line).well();
        assert!(
            output.contains("rule 1 `theirs` does not match:\n    tenant is acme, not umb"),
            "{output}"
        );
        assert!(
            output.contains("rule 2 `ours` matches (tenant acme, peer 192.0.2.0/24"),
            "{output}"
        );
        assert!(output.contains("\nlive at port:\n"), "{output}");
        assert!(!output.contains("the connection is under"), "{output}");
        let output = place.vcc(&format!("{line} --tenant umbrella")).well();
        assert!(output.starts_with("rule 1 `theirs` matches"), "{output}");
        assert!(output.contains("the connection is under `ours`, because its own"), "{output}");

        // The peer has opened this one.
        let listener = guest.inside(|| TcpListener::bind("192.0.2.1:0")).expect("inside");
        let listener = listener.expect("a listener");
        let to = listener.local_addr().expect("an address");
        let theirs = TcpStream::connect(to).expect("a connection");
        let from = theirs.local_addr().expect("an address");
        for line in [format!("explain {from} {to}"), format!("explain {to} {from}")] {
            let output = place.vcc(&line).well();
            assert!(
                output.contains("`ours` does not match:\n    role is server, not client"),
                "{output}"
            );
            assert!(output.contains("\nlive at port:\n"), "{output}");
            assert!(!output.contains("the connection is under"), "{output}");
        }

        daemon.kill();
        let by_kernel = place.vcc(&line);
        assert!(by_kernel.stderr.contains("using the rules in the kernel"), "{}", by_kernel.stderr);
        let output = by_kernel.stdout;
        let miss = "rule 1 `theirs` does not match:\n    tenant and class are those of port, which the rule does not admit\n";
        assert!(output.starts_with(miss), "{output}");
        let matches =
            "rule 2 `ours` matches:\n    the fabric sees dctcp, under any congestion control";
        assert!(output.contains(matches), "{output}");
        assert!(output.contains("\nlive at port:\n"), "{output}");
        assert!(!output.contains("the connection is under"), "{output}");
        // Of one that is not live, the kernel has no tenant unless the port is named.
        let elsewhere = "explain 192.0.2.2:1 192.0.2.1:2";
        let complaint = place.vcc(elsewhere).stderr;
        assert!(
            complaint.contains("guest's port: `ours` at port; `theirs` at other; name"),
            "{complaint}"
        );
        let output = place.vcc(&format!("{elsewhere} --device other")).stdout;
        assert!(output.starts_with("rule 1 `theirs` matches:\n"), "{output}");
        let output = place.vcc(&format!("{elsewhere} --device port --role server")).stdout;
        assert!(
            output.contains("`ours` does not match:\n    role is server, which the rule does"),
            "{output}"
        );
        assert!(output.contains("rule 3 `default` matches:\n    reno-ecn is computed"), "{output}");
        let output = place.vcc("explain 192.0.2.2:1 203.0.113.1:2 --device port").stdout;
        assert!(
            output.contains("    peer is 203.0.113.1, which the rule does not admit\n"),
            "{output}"
        );
        let complaint = place.vcc(&format!("{elsewhere} --tenant acme")).stderr;
        assert!(complaint.contains("have no names of tenants"), "{complaint}");
    });
}

#[test]
fn a_good_policy_replaces_another_and_a_bad_one_does_not() {
    on_a_host(|| {
        let place = Place::new("reload", POLICY);
        let guest = guest();
        let daemon = place.run();
        assert!(daemon.is_ready().contains("1 port under "));
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let rule_of_flow = || {
            let flow = &Port::open("port").expect("open").flows().expect("flows")[0];
            (flow.state.epoch, flow.state.rule)
        };
        assert_eq!(rule_of_flow(), (1, 0));

        let two_rules = format!("{POLICY}[[rules]]\nname = \"all\"\npeer_port = \"1-65535\"\n");
        place.write(&two_rules);
        let output = place.vcc("policy apply").well();
        assert!(
            output.contains("is in force: epoch 2, 1 rule and a default at 1 port, 1 connection"),
            "{output}"
        );
        assert_eq!(rule_of_flow(), (2, 0));

        place.write("[[prots]]\n[default]\nunderlay = \"dtcp\"\n");
        for _ in 0..2 {
            daemon.signal(libc::SIGHUP);
            daemon.wait_for_log("the previous policy stays in force");
            daemon.wait_for_log("the nearest is `dctcp`");
        }
        let output = place.vcc("policy apply");
        assert_eq!((output.code, output.stdout.as_str()), (1, ""));
        assert!(output.stderr.contains("policy.toml:1:3: error: "), "{}", output.stderr);
        assert!(
            output.stderr.contains("policy.toml:3:12: error: `dtcp` is no"),
            "{}",
            output.stderr
        );
        assert_eq!(place.status()["epoch"], 2);
        assert_eq!(place.status()["problems"].as_array().expect("problems").len(), 1);

        place.write(POLICY);
        daemon.signal(libc::SIGHUP);
        assert!(daemon.is_ready().contains("0 rules and a default, epoch 3"));
        assert_eq!(place.status()["problems"].as_array().expect("problems").len(), 0);
        exchange(&mut one, &mut other);
    });
}

/// A file that was truncated by mistake leaves the ports as they are.
#[test]
fn an_empty_policy_is_applied_only_on_request() {
    on_a_host(|| {
        let place = Place::new("empty", POLICY);
        let _guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let other =
            Place::new("empty-other", "# Nothing.\n[[pools]]\nname = \"p\"\nwindow = \"1M\"\n");
        let named = format!("policy apply {}", other.config().display());
        place.write("");
        for command in ["policy apply", &named] {
            let complaint = place.vcc(command).complaint(1);
            assert!(
                complaint.contains(" is empty: it has no [[rules]], no [default] and"),
                "{complaint}"
            );
            assert!(complaint.ends_with("add --allow-empty"), "{complaint}");
        }
        assert_eq!(place.status()["epoch"], 1);
        assert!(Port::open("port").is_ok());
        let applied = place.vcc("policy apply --allow-empty");
        assert_eq!(applied.code, 0, "{}", applied.stderr);
        assert!(applied.stdout.contains("epoch 2, 0 rules, no default at "), "{}", applied.stdout);
        assert!(applied.stderr.contains("detaches from all devices"), "{}", applied.stderr);
        place.write(POLICY);
        place.vcc("policy apply").well();
        assert_eq!(place.vcc(&format!("{named} --allow-empty")).code, 0);
    });
}

#[test]
fn the_policy_in_force_can_be_asked_for() {
    on_a_host(|| {
        let place = Place::new("in-force", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let capped = format!("{POLICY}window_cap = \"64K\"\nguest_ecn = \"override\"\n");
        let other = Place::new("in-force-other", &capped);
        let name = other.config();
        let output = place.vcc(&format!("policy apply {}", name.display())).well();
        assert!(output.contains("is in force until the next reload: epoch 2"), "{output}");
        fs::remove_file(&name).expect("removed");
        assert!(place.vcc("policy show").well().contains("64K"));
        let output = place.vcc("explain 192.0.2.1:1 192.0.2.2:2 --device port").well();
        assert!(output.starts_with("rule 1 `default` matches"), "{output}");
        assert!(place.vcc("status").well().contains("until the next reload, epoch 2"));
        daemon.signal(libc::SIGHUP);
        daemon.wait_for_log(", epoch 3");
        assert!(!place.vcc("policy show").well().contains("64K"));
    });
}

#[test]
fn a_port_that_is_none_any_more_is_drained() {
    on_a_host(|| {
        let place = Place::new("drain", POLICY);
        let guest = guest();
        ip("link add other type veth peer name unused");
        let daemon = place.run();
        daemon.is_ready();
        let (mut one, mut two) = connect(&guest);
        place.write(&POLICY.replace("port*", "other"));
        place.vcc("policy apply").well();
        daemon.wait_for_log("port: draining: the policy no longer names this port");
        daemon.wait_for_log("other: attached, port 1");
        exchange(&mut one, &mut two);
        assert_eq!(Port::open("port").expect("open").flows().expect("flows").len(), 1);
        place.write(POLICY);
        place.vcc("policy apply").well();
        daemon.wait_for_log("port: no longer draining");
        daemon.wait_for_log("other: drained and detached");
        exchange(&mut one, &mut two);
        drop((one, two));
        place.write("[[ports]]\ndevice = \"x\"\n");
        place.vcc("policy apply").well();
        daemon.wait_for_log("port: drained and detached");
        assert!(Port::list().expect("a list").is_empty());
    });
}

#[test]
fn segments_are_sent_where_a_rule_wants_it() {
    on_a_host(|| {
        // They come when the peer has its address again: a flight causes them once, and the guest would
        // wait for its own timeout if the segment that it retransmits for them were lost as well.
        let emitting = format!("{POLICY}emit = true\nemit_after = \"2s\"\nrto_min = \"10s\"\n");
        let place = Place::new("emit", &emitting);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let complaint = place.vcc("emit port").complaint(1);
        assert!(complaint.starts_with("another `vcc emit` is running"), "{complaint}");
        a_lost_flight_arrives(&guest);
        place.write(POLICY);
        place.vcc("policy apply").well();
        let complaint = place.vcc("emit port").complaint(1);
        assert!(complaint.contains("without --emit"), "{complaint}");
        place.write(&emitting);
        place.vcc("policy apply").well();
        assert!(place.vcc("emit port").complaint(1).starts_with("another"));
    });
}

/// The guest has no SACK, and would wait a minute for its own timeout.
fn a_lost_flight_arrives(guest: &Netns) {
    const FLIGHT: [u8; 12_000] = [7; 12_000];
    let configured = guest.inside(|| {
        fs::write("/proc/sys/net/ipv4/tcp_sack", "0").expect("net.ipv4.tcp_sack");
        ip("route replace 192.0.2.2 dev guest rto_min 60s");
    });
    configured.expect("inside");
    let (mut here, mut there) = connect(guest);
    there.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut received = [0; FLIGHT.len()];
    here.write_all(&FLIGHT).expect("sent");
    there.read_exact(&mut received).expect("received");
    let in_flight = || {
        let flows = Port::open("port").expect("open").flows().expect("flows");
        flows[0].state.flight_bytes() as usize
    };
    eventually("nothing is in flight", || in_flight() == 0);
    // Without its address, the peer ignores all packets.
    ip("address delete 192.0.2.2/24 dev port");
    here.write_all(&FLIGHT).expect("sent");
    eventually("all is in flight", || in_flight() == FLIGHT.len());
    ip("address add 192.0.2.2/24 dev port");
    there.read_exact(&mut received).expect("received");
}

/// Keeps the pair of devices from reordering on two CPUs, which would be taken for a loss.
fn stay_on_one_cpu() {
    // SAFETY: all-zero bytes are a valid set of CPUs.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the calls read and write the set, whose size they are given.
    let status = unsafe {
        libc::CPU_SET(0, &mut cpus);
        libc::sched_setaffinity(0, size_of_val(&cpus), &cpus)
    };
    assert_eq!(status, 0);
}

fn retransmissions(stream: &TcpStream) -> u32 {
    TcpInfo::read(stream).expect("a TCP socket").total_retrans_segs
}

#[test]
fn policies_change_under_traffic_and_no_segment_is_lost() {
    on_a_host(|| {
        let place = Place::new("traffic", POLICY);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let prepare = || {
            fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("reno");
            // Tail loss probes are retransmissions where nothing was lost.
            fs::write("/proc/sys/net/ipv4/tcp_early_retrans", "0").expect("no probes");
        };
        prepare();
        guest.inside(prepare).expect("inside");
        let (mut from, mut to) = connect(&guest);
        let enough = AtomicBool::new(false);
        let chunk: Vec<u8> = (0..1 << 16).map(|i| (i * 7 % 251) as u8).collect();
        thread::scope(|scope| {
            let end = EndOnDrop(&enough);
            let sending = scope.spawn(|| {
                stay_on_one_cpu();
                let mut sent = 0;
                while !enough.load(Ordering::Relaxed) {
                    from.write_all(&chunk).expect("sent");
                    sent += chunk.len();
                }
                from.shutdown(std::net::Shutdown::Write).expect("ended");
                sent
            });
            let receiving = scope.spawn(|| {
                stay_on_one_cpu();
                let mut arrived = 0;
                let mut buffer = vec![0; chunk.len()];
                loop {
                    let read = to.read(&mut buffer).expect("received");
                    if read == 0 {
                        return arrived;
                    }
                    for (at, byte) in buffer[..read].iter().enumerate() {
                        assert_eq!(*byte, chunk[(arrived + at) % chunk.len()]);
                    }
                    arrived += read;
                }
            });
            for round in 0..20 {
                let rules: String = (0..round)
                    .map(|i| format!("[[rules]]\nname = \"r{i}\"\npeer = \"10.{i}.0.0/16\"\n"))
                    .collect();
                let underlay = ["dctcp", "cubic", "reno-ecn"][round % 3];
                place.write(&format!("{}{rules}", POLICY.replace("dctcp", underlay)));
                place.vcc("policy apply").well();
            }
            drop(end);
            let sent = sending.join().expect("sent");
            assert_eq!(receiving.join().expect("received"), sent);
        });
        assert_eq!((retransmissions(&from), retransmissions(&to)), (0, 0));
        let port = Port::open("port").expect("open");
        let seen = port.counters().expect("counters");
        assert_eq!(seen.get(counters::UNKNOWN), 0);
        assert_eq!(seen.get(counters::DROPPED), 0);
        assert_eq!(place.status()["epoch"], 21);
    });
}

#[test]
fn what_was_detached_a_moment_ago_is_a_port_again() {
    on_a_host(|| {
        let place = Place::new("at-once", POLICY);
        ip("link add port type veth peer name guest");
        let daemon = place.run();
        daemon.is_ready();
        // The daemon looks around now and then: each time it may just have done so.
        for round in 1..=4 {
            let max_flows = 1000 * round;
            let ports = "device = \"port*\"\n";
            place.write(&POLICY.replace(ports, &format!("{ports}max_flows = {max_flows}\n")));
            vcc("detach port --now").well();
            assert_eq!(place.ports(), [], "nothing is reported of what is not there");
            place.vcc("policy apply").well();
            assert_eq!(place.ports(), [("port".to_owned(), 0)]);
            let port = Port::open("port").expect("open");
            assert_eq!(port.max_flows().expect("a size"), max_flows);
        }
    });
}

#[test]
fn what_began_to_drain_a_moment_ago_is_a_port_again() {
    on_a_host(|| {
        let place = Place::new("drains-at-once", POLICY);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let _talk = connect(&guest);
        for _ in 0..4 {
            assert!(vcc("detach port").well().contains("draining"));
            place.vcc("policy apply").well();
            assert!(!Port::open("port").expect("open").drains().expect("parameters"));
            assert_eq!(place.status()["ports"][0]["draining"], false);
        }
    });
}

#[test]
fn what_could_not_be_made_a_port_is_in_the_answer() {
    on_a_host(|| {
        let place = Place::new("answer", POLICY);
        ip("tuntap add mode tun name port-tun");
        let daemon = place.run();
        daemon.is_ready();
        let output = place.vcc("policy apply").well();
        let [_, problem] = output.lines().collect::<Vec<_>>()[..] else { panic!("{output}") };
        assert!(problem.starts_with("problem: port-tun is not a port: "), "{output}");
    });
}

/// The time until unknown connections are dropped is reported, and stays over a restart.
#[test]
fn the_grace_of_unknown_connections_is_reported() {
    on_a_host(|| {
        let policing = format!("{POLICY}police = true\nguest_ecn = \"override\"\n");
        let place = Place::new("unknown", POLICY);
        let _guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let left_s = || place.status()["ports"][0]["unknown_dropped_in_s"].clone();
        assert!(left_s().is_null());
        assert!(place.vcc("status").well().contains("UNKNOWN"));
        assert!(!place.vcc("doctor --device port").stdout.contains("does not know"));
        place.write(&policing);
        place.vcc("policy apply").well();
        assert!(left_s().as_u64().is_some_and(|left_s| (1..=300).contains(&left_s)));
        assert!(place.vcc("status").well().contains("dropped in "));
        let output = place.vcc("doctor --device port").stdout;
        assert!(output.contains("Dropped in ") && output.contains("does not know"), "{output}");
        place.write(&format!("{policing}unknown_grace = \"0s\"\n"));
        drop(daemon);
        let daemon = place.run();
        daemon.is_ready();
        assert_eq!(left_s(), 0);
        place.write(&policing);
        place.vcc("policy apply").well();
        let output = place.vcc("doctor --device port --json").stdout;
        assert!(output.contains("\"unknown_dropped_in_s\": "), "{output}");
    });
}
