//! `vcc top --hosts`, with a daemon in each of two namespaces.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use serde_json::Value;
use vcc_port::Netns;
use vcc_testing::{guest, ip, isolated, on_a_host};

use crate::daemon::Place;
use crate::pty::Pty;
use crate::screen::while_sending;
use crate::wire::{connect, exchange};

const POLICY: &str =
    "[[ports]]\ndevice = \"port*\"\ntenant = \"acme\"\n[default]\nunderlay = \"dctcp\"\n";

#[test]
fn hosts_that_do_not_answer_keep_no_other_out() {
    on_a_host(|| {
        ip("link set lo up");
        let here = Netns::current().expect("a namespace");
        let _guest = guest();
        let place = Place::new("first", POLICY);
        let daemon = place.run_at("0.0.0.0:9644");
        daemon.is_ready();
        // Takes connections and is silent, as a host that hangs.
        let _hung = TcpListener::bind("127.0.0.1:9645").expect("a listener");
        isolated(|| {
            ip(&format!("link add fabric type veth peer name fabric netns {}", here.path()));
            ip("address add 198.51.100.2/24 dev fabric");
            ip("link set fabric up");
            let up = || {
                ip("address add 198.51.100.1/24 dev fabric");
                ip("link set fabric up");
            };
            here.inside(up).expect("inside");
            let guest = guest();
            let other = Place::new("second", POLICY);
            let daemon = other.run_at("0.0.0.0:80");
            daemon.is_ready();
            let (mut one, mut peer) = connect(&guest);
            exchange(&mut one, &mut peer);
            while_sending(&mut one, &mut peer, || here.inside(|| look(&place)).expect("inside"));
        });
    });
}

/// From the first host: itself, the other, a port where nobody is, one that is silent, an address that
/// nobody has, and a socket that is none.
fn look(place: &Place) {
    let silent = place.path("silent.sock");
    let _listener = UnixListener::bind(&silent).expect("a socket");
    let hosts = format!(
        "# ours\nlocalhost\n198.51.100.2:80\n198.51.100.2:1 # none\n127.0.0.1:9645\n198.51.100.9\n{}\n{}\n",
        place.path("no.sock").display(),
        silent.display(),
    );
    place.write_hosts(&hosts);
    // A daemon serves its last reading, which may be older than its port.
    let asked = || -> Value {
        let output = place.vcc("top --hosts HOSTS --timeout 1 --json");
        serde_json::from_str(&output.stdout).expect("JSON")
    };
    let is_ready = |view: &Value| view["hosts"][0]["ports"] == 1 && view["hosts"][1]["flows"] == 1;
    std::iter::repeat_with(asked).take(20).find(is_ready).expect("a port at each host");
    let output = place.vcc("top --hosts HOSTS --timeout 1 --json");
    assert_eq!(output.code, 1, "some do not answer: {}", output.stderr);
    let view: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let hosts = view["hosts"].as_array().expect("hosts");
    let error = |host: usize| hosts[host]["error"].as_str().unwrap_or_default().to_owned();
    assert_eq!(hosts.len(), 7);
    assert_eq!((error(0), &hosts[0]["ports"]), (String::new(), &1.into()), "{view}");
    assert_eq!((error(1), &hosts[1]["flows"]), (String::new(), &1.into()), "{view}");
    assert!(error(2).starts_with("connection refused"), "{view}");
    assert_eq!(
        (error(3), error(6)),
        ("no answer within 1 s".to_owned(), "no answer within 1 s".to_owned())
    );
    assert!(error(4).contains("no answer within") || error(4).contains("No route"), "{view}");
    assert!(error(5).contains("No such file"), "{view}");
    // Rates come with the reads of a daemon that somebody watches.
    let busiest = || asked()["busiest_ports"][0].clone();
    let busy =
        std::iter::repeat_with(busiest).take(20).find(|busy| !busy.is_null()).expect("a rate");
    assert_eq!(
        (&busy["host"], &busy["tenant"]),
        (&"198.51.100.2:80".into(), &"acme".into()),
        "{busy}"
    );

    let shown = place.vcc("top --hosts HOSTS --timeout 1").stdout;
    assert!(shown.starts_with("HOST ") && shown.contains("\nBusiest ports:\nHOST "), "{shown}");
    assert!(shown.contains("198.51.100.2:1 ") && shown.contains("connection refused"), "{shown}");

    let file = place.path("hosts");
    let mut top =
        Pty::run(&format!("top --hosts {} --timeout 1 --interval 0.5", file.display()), (160, 30));
    top.eventually("both hosts, and why the others do not answer", |text| {
        text.starts_with("vcc top  2 of 7 hosts answer  1 flows")
            && text.contains("connection refused")
            && text.contains("no answer within 1 s")
            && text.contains("Busiest ports")
    });
    top.press("q");
    assert_eq!(top.end(), 0);
}

/// One after the other, forty hosts that hang would take forty timeouts.
#[test]
fn no_host_waits_for_another() {
    const HOSTS: u32 = 40;
    let place = Place::new("hung", POLICY);
    let sockets: Vec<_> = (0..HOSTS).map(|host| place.path(&format!("{host}.sock"))).collect();
    let listeners = sockets.iter().map(|socket| UnixListener::bind(socket).expect("a socket"));
    let _listeners: Vec<_> = listeners.collect();
    let hosts: String = sockets.iter().map(|socket| format!("{}\n", socket.display())).collect();
    place.write_hosts(&hosts);
    let begin = Instant::now();
    let output = place.vcc("top --hosts HOSTS --timeout 2 --json");
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(2) * HOSTS / 2, "one waits for another: {took:?}");
    let view: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(view["hosts"][39]["error"], "no answer within 2 s", "{view}");
}

#[test]
fn a_file_without_hosts_is_an_error() {
    let place = Place::new("hosts", POLICY);
    place.write_hosts("a\nnot a host\n");
    let output = place.vcc("top --hosts HOSTS --json");
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("line 2: `not a host` is not a host"), "{}", output.stderr);
    let output = place.vcc("top --json");
    assert_eq!(output.code, 2, "{}", output.stderr);
}
