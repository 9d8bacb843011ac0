//! Full-screen commands, driven in a terminal.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use vcc_policy::Policy;
use vcc_port::{AttachOptions, Host, Port, SharedPolicy};
use vcc_testing::{EndOnDrop, guest, ip, on_a_host};

use crate::pty::Pty;
use crate::vcc;
use crate::wire::{connect, ends, exchange};

/// Sends from one end to the other for as long as `work` takes.
pub fn while_sending<T>(from: &mut TcpStream, to: &mut TcpStream, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        scope.spawn(|| {
            let block = [7; 65_536];
            while !is_over.load(Ordering::Relaxed) {
                if from.write_all(&block).is_err() {
                    break;
                }
            }
            let _ = from.shutdown(std::net::Shutdown::Write);
        });
        scope.spawn(|| {
            let mut block = [0; 65_536];
            while to.read(&mut block).is_ok_and(|count| count > 0) {
                // The machine is shared.
                thread::sleep(Duration::from_millis(1));
            }
        });
        work()
    })
}

#[test]
fn top_shows_flows_obeys_keys_and_gives_the_terminal_back() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --underlay cubic").well();
        let (mut here, mut there) = connect(&guest);
        let (idle, _idle) = connect(&guest);
        let [busy_end, _] = ends(&here);
        let [idle_end, _] = ends(&idle);
        while_sending(&mut here, &mut there, || {
            let mut top = Pty::run("top --interval 0.3", (80, 24));
            let text = top.eventually("both flows, and a rate", |text| {
                text.contains(&busy_end)
                    && text.contains(&idle_end)
                    && text.contains("bit/s  by rate")
            });
            assert!(text.starts_with("vcc top  1 port  2 flows"), "{text}");
            top.eventually("the busy one comes first", |text| {
                text.find(&busy_end) < text.find(&idle_end)
                    && (text.contains("Mbit/s") || text.contains("Gbit/s"))
            });
            top.eventually("its detail", |text| {
                text.contains(&format!("{busy_end} - 192.0.2.2:")) && text.contains("limited by ")
            });
            let detail = format!("{idle_end} - 192.0.2.2:");
            top.press("\x1b[B");
            top.eventually("the other's detail", |text| text.contains(&detail));
            top.press("\r");
            top.eventually("no detail", |text| !text.contains(&detail));
            top.press("?");
            top.eventually("help", |text| text.contains("Keys"));
            top.press("x");
            top.eventually("no help", |text| !text.contains("Keys"));
            let (_, port) = idle_end.rsplit_once(':').expect("a port");
            top.press(&format!("/:{port}"));
            let text = top.eventually("one flow", |text| text.contains("1 of 2 flows"));
            assert!(!text.contains(&busy_end), "{text}");
            top.press("\x1b");
            top.eventually("both flows again", |text| text.contains("  2 flows"));
            top.press("p");
            top.eventually("a pause", |text| text.contains("PAUSED"));
            top.resize(120, 40);
            top.eventually("more columns", |text| text.contains("SRTT") && text.contains("RETR"));
            top.press("q");
            assert_eq!(top.end(), 0);
        });
    });
}

#[test]
fn whatever_ends_it_the_terminal_is_as_it_was() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port").well();
        for how in [libc::SIGTERM, libc::SIGHUP, 0] {
            let mut top = Pty::run("top", (80, 24));
            top.eventually("it has begun", |text| text.contains("no connections"));
            match how {
                0 => top.press("\x03"),
                signal => top.signal(signal),
            }
            assert_eq!(top.end(), 0);
        }
    });
}

#[test]
fn however_rarely_top_shows_flows_they_are_read_for_their_rates() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port").well();
        let mut top = Pty::run("top port --interval 60", (80, 24));
        top.eventually("it has begun", |text| text.contains("no connections"));
        // Until the first table has been followed by the second.
        thread::sleep(Duration::from_secs(1));
        vcc("detach port").well();
        top.eventually("that it cannot read", |text| text.contains("vcc is not attached to"));
        top.press("q");
        assert_eq!(top.end(), 0);
    });
}

#[test]
fn without_a_terminal_there_is_another_way() {
    on_a_host(|| {
        let complaint = vcc("top").complaint(1);
        assert!(complaint.contains("needs a terminal"), "{complaint}");
        assert!(complaint.contains("`vcc flows --watch`"), "{complaint}");
        let _guest = guest();
        vcc("attach port").well();
        let complaint = vcc("top nowhere0").complaint(1);
        assert!(complaint.contains("no network device `nowhere0`"), "{complaint}");
    });
}

#[test]
fn a_connection_is_seen_live() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let [end, peer] = ends(&here);
        let complaint = vcc(&format!("trace {end} --live")).complaint(1);
        assert!(complaint.contains("needs a terminal"), "{complaint}");
        while_sending(&mut here, &mut there, || {
            let mut live = Pty::run(&format!("trace {end} --live=5"), (80, 24));
            let text = live.eventually("curves", |text| {
                text.contains("limited by ") && text.chars().any(|c| ('⠁'..='⣿').contains(&c))
            });
            assert!(text.starts_with(&format!("{end} - {peer} at port")), "{text}");
            live.press("+");
            live.eventually("half the time", |text| text.contains("the last 2.5 s"));
            live.press("q");
            let after = live.eventually("what limits it", |text| text.contains(": limited by "));
            assert!(after.contains(&format!("{end}-{peer}")), "{after}");
            assert_eq!(live.end(), 0);
        });
    });
}

#[test]
fn what_limits_a_connection_under_a_policy_is_what_its_rule_says() {
    const CAPPED: &str = "[[rules]]\nname = \"capped\"\nwindow_cap = \"4K\"\n";
    on_a_host(|| {
        let guest = guest();
        let shared = SharedPolicy::open().expect("a policy");
        let policy = Policy::parse(CAPPED, "policy.toml").expect("a good one").policy;
        shared.apply(&policy, &[(0, vcc_policy::Affiliation::default())]).expect("applied");
        let host = Host::open().expect("a host");
        let options = AttachOptions::default();
        let admit = |index| shared.admit(index, &policy, vcc_policy::Affiliation::default());
        Port::attach_pinned_under(&host, "port", &options, admit).expect("attached");
        let (mut here, mut there) = connect(&guest);
        let [end, _] = ends(&here);
        while_sending(&mut here, &mut there, || {
            let mut live = Pty::run(&format!("trace {end} --live"), (120, 24));
            live.eventually("its cap", |text| text.contains("limited by the cap of "));
            live.press("q");
            assert_eq!(live.end(), 0);
        });
    });
}

#[test]
fn a_watched_table_stays_in_its_place() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (here, _there) = connect(&guest);
        let [end, _] = ends(&here);
        let mut watch = Pty::run("flows --watch 0.1", (120, 24));
        watch.eventually("rates", |text| text.contains("0 bit/s"));
        // Several tables have come by now, of which one is to be seen.
        thread::sleep(Duration::from_millis(400));
        let text = watch.text();
        assert_eq!(text.matches(&end).count(), 1, "{text}");
        assert_eq!(text.matches("LIMITED-BY").count(), 1, "{text}");
        assert!(text.starts_with("PORT"), "{text}");
        watch.press("\x03");
        assert_eq!(watch.end(), 0);
    });
}

#[test]
fn a_recording_is_drawn() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let [end, peer] = ends(&here);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("plot.svg");
        let line = format!("trace {end} --count 50 --plot {}", file.display());
        let output = thread::scope(|scope| {
            let output = scope.spawn(|| vcc(&line).well());
            while !output.is_finished() {
                exchange(&mut here, &mut there);
            }
            output.join().expect("what it output")
        });
        let svg = fs::read_to_string(&file).expect("a picture");
        assert_eq!(output, format!("50 ACKs drawn: {}\n", file.display()));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.contains(&format!("{end}-{peer} at port")), "{svg}");
        for name in ["window shown", "flight", "cwnd", "srtt (ms)", "Last limited by "] {
            assert!(svg.contains(name), "{name}");
        }
        let complaint = vcc("trace --device port --plot /nowhere/at/all.svg").complaint(2);
        assert!(complaint.contains("<FLOW"), "{complaint}");
        let complaint = vcc(&format!("trace {end} --plot /nowhere/at/all.svg")).complaint(1);
        assert!(complaint.contains("cannot write /nowhere/at/all.svg"), "{complaint}");
    });
}
