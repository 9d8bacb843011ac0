//! `vcc flows` and `vcc explain`: which flows are shown, in which order, how often.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;
use vcc_testing::{guest, on_a_host};
use vcc_view::Page;

use crate::wire::{connect, ends, exchange};
use crate::{CommandOutput, command, vcc};

fn guests(arguments: &str) -> Vec<String> {
    let json = vcc(&format!("flows --json {arguments}")).well();
    let flows: Vec<Value> = serde_json::from_str(&json).expect("an array");
    flows.iter().map(|flow| flow["guest"].as_str().expect("an end").to_owned()).collect()
}

#[test]
fn filters_and_orders_compose() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --underlay dctcp").well();
        let (mut here, mut there) = connect(&guest);
        let (other, _other) = connect(&guest);
        exchange(&mut here, &mut there);
        let [[one, one_peer], [two, _]] = [&here, &other].map(ends);
        let both = {
            let mut both = [one.clone(), two.clone()];
            both.sort_by_key(|end| end.parse::<SocketAddr>().expect("an end").port());
            both
        };
        let reversed = [both[1].clone(), both[0].clone()];
        let (_, one_port) = one.rsplit_once(':').expect("a port");
        let one_alone = std::slice::from_ref(&one);
        assert_eq!(guests(""), both);
        assert_eq!(guests("--reverse"), reversed);
        assert_eq!(guests("port --peer 192.0.2.0/24 --stage established --underlay dctcp"), both);
        assert_eq!(guests("--peer 10.0.0.0/8"), Vec::<String>::new());
        assert_eq!(guests(&format!("--guest :{one_port} --ecn fabric")), one_alone);
        assert_eq!(guests(&format!("--peer {one_peer} --underlay dctcp,cubic")), one_alone);
        assert_eq!(guests("--with marks --ecn fabric"), Vec::<String>::new());
        // Only one of them has sent anything, and so grown.
        assert_eq!(guests("--sort cwnd --top 1"), one_alone);
        assert_eq!(guests("--sort srtt").len(), 2);
        assert_eq!(guests("--sort guest --reverse"), reversed);
        let table = vcc("flows --sort rate").well();
        assert!(table.starts_with("PORT") && table.contains("RATE"), "{table}");
        let wide = vcc("flows --wide").well();
        assert!(wide.contains("SND-UNA") && wide.contains("FORGED"), "{wide}");
        for (arguments, expected) in [
            ("--peer 10.0.0.0/33", "may be a network ADDRESS/BITS"),
            ("--stage open", "established"),
            ("--sort speed", "retransmissions"),
            ("--sort limit", "limited-by"),
            ("--limited-by fate", "receiver"),
            ("--top 0", "must be a number of 1 or more"),
            ("--watch 0", "a number of seconds"),
        ] {
            let complaint = vcc(&format!("flows {arguments}")).complaint(2);
            assert!(complaint.contains(expected), "{arguments}: {complaint}");
        }
    });
}

#[test]
fn the_limit_of_a_flow_is_shown() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        thread::sleep(Duration::from_millis(300));
        let flows: Vec<Value> = serde_json::from_str(&vcc("flows --json").well()).expect("JSON");
        let [flow] = &flows[..] else { panic!("{flows:?}") };
        assert_eq!(flow["limited_by"], "idle", "{flow}");
        let text = flow["limited_by_text"].as_str().expect("words");
        assert!(text.starts_with("idle: the guest has sent nothing for"), "{text}");
        for column in vcc_view::FLOW_COLUMNS {
            assert!(flow.get(column.key).is_some(), "{}: {flow}", column.key);
        }
        // A receiver that does not read.
        let mut sender = here.try_clone().expect("the same connection");
        thread::spawn(move || std::io::Write::write_all(&mut sender, &vec![1; 64 << 20]));
        let mut seen = Value::Null;
        for _ in 0..100 {
            let flows: Value = serde_json::from_str(&vcc("flows --json").well()).expect("JSON");
            seen = flows[0].clone();
            if seen["limited_by"] == "receiver" {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(seen["limited_by"], "receiver", "{seen}");
        here.shutdown(std::net::Shutdown::Both).expect("shut down");
    });
}

#[test]
fn a_live_connection_is_explained_with_what_the_page_shows_of_it() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --underlay dctcp").well();
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        let [guests_end, peer] = ends(&here);
        let policy = tempfile::NamedTempFile::new().expect("a file");
        let file = policy.path();
        fs::write(file, "[[rules]]\nname = \"web\"\nunderlay = \"dctcp\"\n").expect("a file");
        // Warnings about the policy are on stderr.
        let explain = |ends: &str| vcc(&format!("explain {ends} --file {}", file.display())).stdout;
        let text = explain(&format!("{guests_end} {peer}"));
        assert!(text.contains("\nlive at port:\n"), "{text}");
        let in_detail = vcc_view::FLOW_COLUMNS.iter().filter(|it| it.page != Page::Nowhere);
        for column in in_detail {
            assert!(text.contains(&format!("\n  {} ", column.name)), "{}: {text}", column.name);
        }
        assert!(text.contains("  dctcp\n"), "{text}");
        let other = explain(&format!("{peer} {guests_end}"));
        assert!(!other.contains("live"), "its guest would be at the other end: {other}");
    });
}

#[test]
fn a_watch_prints_rates_again_and_again() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let begin = |arguments: &str| {
            let arguments = arguments.split_whitespace();
            let child = command().args(arguments).stdout(Stdio::piped()).spawn();
            child.expect("the command")
        };
        let mut watch = begin("flows --watch 0.2 --json");
        let mut lines = BufReader::new(watch.stdout.take().expect("its output")).lines();
        let mut goodput = 0.0_f64;
        for _ in 0..20 {
            exchange(&mut here, &mut there);
            let line = lines.next().expect("a line").expect("UTF-8");
            let document: Value = serde_json::from_str(&line).expect("a document a line");
            assert!(document["time_s"].as_f64() > Some(1e9), "{line}");
            let rate = document["flows"][0]["goodput_bits_per_s"].as_f64().expect("a rate");
            goodput = goodput.max(rate);
            if goodput > 0.0 {
                break;
            }
        }
        // A mebibyte at least, within a second at most.
        assert!(goodput > 1e6, "{goodput}");
        // A reader that closes the pipe ends the command.
        drop(lines);
        assert!(watch.wait().expect("its end").success());

        let mut watch = begin("flows --watch 0.1 port");
        let lines = BufReader::new(watch.stdout.take().expect("its output")).lines();
        let seen: Vec<String> = lines.take(5).map(|line| line.expect("UTF-8")).collect();
        assert!(seen[0].starts_with("PORT") && seen[0].contains("RATE"), "{seen:?}");
        assert_eq!((seen[2].as_str(), &seen[3]), ("", &seen[0]), "{seen:?}");
        assert!(watch.wait().expect("its end").success());
    });
}

#[test]
fn a_trial_says_what_the_underlay_would_limit() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --mode shadow --underlay dctcp --initial-window-segments 2").well();
        let none = vcc("trial --duration 0.2").complaint(1);
        assert!(none.contains("no connection in shadow mode was seen"), "{none}");
        let (mut here, mut there) = connect(&guest);
        exchange(&mut here, &mut there);
        let table = vcc("flows").well();
        assert!(table.contains("MODE") && table.contains("WOULD-SHOW"), "{table}");
        let flows: Value = serde_json::from_str(&vcc("flows --json").well()).expect("JSON");
        assert_eq!(flows[0]["mode"], "shadow");
        assert!(flows[0]["would_show_bytes"].as_u64() > Some(0), "{flows}");
        let trial = vcc("trial --duration 0.5 --every 0.05 --json").well();
        let report: Value = serde_json::from_str(&trial).expect("JSON");
        assert_eq!(report["total"]["connections"], 1);
        assert_eq!(report["groups"][0]["name"], "port");
        assert_eq!(report["groups"][0]["underlays"][0], "dctcp");
        assert!(report["reads"].as_u64() >= Some(3), "{report}");
        assert!(report["cost_cpu"].as_f64() >= Some(0.0), "{report}");
        let text = vcc("trial port --duration 0.2 --by tenant").well();
        assert!(
            text.contains("How the guests would have answered smaller windows is not known."),
            "{text}"
        );
    });
}

#[test]
fn ports_show_what_they_cost() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let measuring =
            command().args(["ports", "--cost=1", "--json"]).stdout(Stdio::piped()).spawn();
        let mut measuring = measuring.expect("the command");
        while measuring.try_wait().expect("a status").is_none() {
            exchange(&mut here, &mut there);
        }
        let shown: CommandOutput = measuring.wait_with_output().expect("its end").into();
        let ports: Value = serde_json::from_str(&shown.well()).expect("JSON");
        let number = |key: &str| ports[0][key].as_f64().unwrap_or_else(|| panic!("{key}: {ports}"));
        let cpu = ["from", "to"].map(|way| {
            let frames_per_s = number(&format!("frames_{way}_guest_per_s"));
            let frame_ns = number(&format!("cost_{way}_guest_ns"));
            assert!(frames_per_s > 0.0 && frame_ns > 1.0, "{way}: {ports}");
            // One byte at a time, of a connection that was there before.
            let fast_part = number(&format!("fast_path_{way}_guest"));
            assert!(fast_part > 0.5 && fast_part <= 1.0, "{way}: {ports}");
            frames_per_s * frame_ns / 1e9
        });
        let sum = cpu[0] + cpu[1];
        assert!((number("cost_cpu") / sum - 1.0).abs() < 1e-6, "{sum}: {ports}");
        let text = vcc("ports --cost=0.1").well();
        // What else the device carries meanwhile, such as a router solicitation, costs, too.
        assert!(text.contains(" % of a CPU: "), "{text}");
        let plain: Value = serde_json::from_str(&vcc("ports --json").well()).expect("JSON");
        assert!(plain[0]["cost_cpu"].is_null(), "{plain}");
    });
}
