//! The server against clients that are many, slow, wrong, or malicious.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use vcc_testing::skip;
use vcc_web::testing::Fake;
use vcc_web::{Limits, METRICS, Options, Server, Snapshot, Source, serve_with};

const LONG: Duration = Duration::from_secs(3600);
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of attempts at something that has to succeed at last.
const TRIES: usize = 2000;

fn limits() -> Limits {
    Limits { fresh_for: LONG, header_within: LONG, all_within: LONG, ..Limits::default() }
}

fn started(limits: Limits) -> (Server, Arc<Fake>) {
    let fake = Arc::<Fake>::default();
    (started_with(limits, fake.clone()), fake)
}

fn started_with(limits: Limits, source: Arc<dyn Source>) -> Server {
    let listen = "127.0.0.1:0".parse().expect("an address");
    serve_with(Options { listen, limits, ..Options::default() }, source).expect("a server")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Everything that comes back, also of a connection that is reset.
fn talk(address: SocketAddr, output: &[u8]) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(output);
    response(&mut stream)
}

fn response(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    talk(address, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

#[track_caller]
fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head and a body").1
}

fn metric(address: SocketAddr, start: &str) -> f64 {
    let answer = get(address, "/metrics");
    let line = body(&answer).lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("no {start} in {answer}")).trim().parse().expect("a number")
}

#[test]
fn a_flood_costs_one_reading() {
    let (server, fake) = started(limits());
    let address = server.address();
    thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || {
                for number in 0..125 {
                    let paths = ["/metrics", "/healthz", "/api/snapshot.json", "/api/flows.json"];
                    let answer = get(address, paths[(client + number) % paths.len()]);
                    assert!(answer.starts_with("HTTP/1.1 200") || answer.contains("\"ok\":false"));
                }
            });
        }
    });
    assert_eq!(fake.reads(), 1);
    assert_eq!(metric(address, "vcc_web_requests_total "), 1000.0);
}

/// Answers when it is let.
#[derive(Default)]
struct Waiting(Mutex<()>);

impl Source for Waiting {
    fn snapshot(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
        let _let = self.0.lock().expect("no other panics");
        Ok(vcc_web::testing::snapshot(0))
    }
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn connections_beyond_the_limit_are_refused_while_others_are_answered() {
    let source = Arc::<Waiting>::default();
    let wait = source.0.lock().expect("no other panics");
    let limits = Limits { connections: 4, answered_within: LONG, ..limits() };
    let server = started_with(limits, source.clone());
    let address = server.address();
    let mut asking: Vec<TcpStream> = (0..4).map(|_| connect(address)).collect();
    asking.iter_mut().for_each(|stream| stream.write_all(HEALTH).expect("sent"));
    // Until the server has read all four requests, another one takes the place of one that has not asked.
    let refused = (0..TRIES).any(|_| {
        let mut stream = connect(address);
        stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        stream.write_all(HEALTH).expect("sent");
        let mut answer = [0; 1024];
        let bytes = stream.read(&mut answer).unwrap_or(0);
        if bytes == 0 {
            asking.push(stream);
        }
        String::from_utf8_lossy(&answer[..bytes]).contains("Too many connections")
    });
    assert!(refused);
    drop(wait);
    let answers: Vec<String> = asking.iter_mut().map(response).collect();
    assert!(answers.iter().any(|answer| answer.starts_with("HTTP/1.1 ")), "{answers:?}");
    assert!(metric(address, "vcc_web_refused_total{reason=\"connections\"}") >= 1.0);
}

#[test]
fn who_does_not_ask_gives_way_to_who_does() {
    let (server, _) = started(limits());
    let address = server.address();
    let most = Limits::default().connections;
    let half = |_| {
        let mut stream = connect(address);
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").expect("sent");
        stream
    };
    let mut slow: Vec<TcpStream> = (0..most).map(half).collect();
    for _ in 0..most + 10 {
        assert_status(&get(address, "/metrics"), 200);
    }
    // One place is free whenever nobody asks.
    assert_eq!(metric(address, "vcc_web_refused_total{reason=\"connections\"}"), 1.0);
    assert_eq!(response(&mut slow[0]), "", "the oldest");
}

#[test]
fn who_sends_slowly_is_cut_off() {
    let limits = Limits { header_within: Duration::from_millis(100), ..limits() };
    let (server, _) = started(limits);
    let address = server.address();
    let mut slow = [connect(address), connect(address)];
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: local").expect("sent");
    }
    for stream in &mut slow {
        assert!(!response(stream).starts_with("HTTP/1.1 200"));
    }
    assert_eq!(metric(address, "vcc_web_refused_total{reason=\"time\"}"), 2.0);
}

#[test]
fn who_says_nothing_at_all_is_cut_off_too() {
    let (server, _) = started(Limits { all_within: Duration::from_millis(100), ..limits() });
    assert_eq!(response(&mut connect(server.address())), "");
}

#[test]
fn garbage_is_refused_and_counted() {
    let (server, _) = started(limits());
    let address = server.address();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
    ] {
        let answer = talk(address, garbage);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    assert_eq!(metric(address, "vcc_web_refused_total{reason=\"malformed\"}"), 5.0);
}

#[test]
fn large_headers_are_refused() {
    let (server, _) = started(limits());
    let address = server.address();
    let padded = |bytes: usize| {
        let padding = "x".repeat(bytes);
        talk(
            address,
            format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {padding}\r\n\r\n").as_bytes(),
        )
    };
    assert_status(&padded(4_000), 200);
    let answer = padded(10_000);
    assert_status(&answer, 431);
    assert_eq!(body(&answer), "The header is larger than 8192 bytes\n");
    assert!(!padded(1_000_000).starts_with("HTTP/1.1 200"));
    let many: String = (0..1000).map(|number| format!("X-{number}: x\r\n")).collect();
    let answer =
        talk(address, format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes());
    assert_status(&answer, 431);
    assert_eq!(metric(address, "vcc_web_refused_total{reason=\"header_size\"}"), 3.0);
}

#[test]
fn invalid_requests_are_answered_by_one_line() {
    let (server, _) = started(limits());
    let address = server.address();
    for (request, status, reason) in [
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", 405, "method"),
        ("OPTIONS /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "method"),
        ("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "path"),
        ("GET /../style.css HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "path"),
        ("GET /api/flows.json?sort=x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "query"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "host"),
        ("GET / HTTP/1.1\r\n\r\n", 400, "host"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400, "host"),
        ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421, "host"),
    ] {
        let counter = format!("vcc_web_refused_total{{reason=\"{reason}\"}}");
        let before = metric(address, &counter);
        let answer = talk(address, request.as_bytes());
        assert_status(&answer, status);
        assert!(body(&answer).len() > 1 && body(&answer).lines().count() == 1, "{answer}");
        assert_eq!(metric(address, &counter), before + 1.0, "{request}");
        assert_eq!(answer.contains("\r\nallow: GET, HEAD\r\n"), status == 405, "{answer}");
    }
}

#[test]
fn every_answer_says_what_browsers_may_do_with_it() {
    let (server, _) = started(limits());
    for path in ["/", "/style.css", "/page.js", "/metrics", "/healthz", "/api/history.json", "/no"]
    {
        let answer = get(server.address(), path);
        for header in
            ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff"]
        {
            assert!(answer.contains(header), "{path}: {answer}");
        }
        assert!(!answer.contains("access-control-"), "{path}: {answer}");
    }
}

#[test]
fn head_has_the_length_and_no_body() {
    let (server, _) = started(limits());
    let answer = talk(server.address(), b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_status(&answer, 200);
    assert_eq!(body(&answer), "");
    let length = body(&get(server.address(), "/")).len();
    assert!(answer.contains(&format!("\r\ncontent-length: {length}\r\n")), "{answer}");
}

#[test]
fn a_failing_source_is_reported() {
    let (server, fake) = started(Limits { fresh_for: Duration::ZERO, ..limits() });
    let address = server.address();
    assert_status(&get(address, "/api/snapshot.json"), 200);
    fake.fails.store(true, Ordering::Relaxed);
    for path in ["/api/snapshot.json", "/api/flows.json", "/healthz"] {
        let answer = get(address, path);
        assert_status(&answer, 503);
        assert!(body(&answer).contains("the maps are gone: start the daemon again"), "{answer}");
    }
    assert_eq!(metric(address, "vcc_snapshot_success "), 0.0);
    assert!(metric(address, "vcc_snapshot_failures_total ") >= 4.0);
    fake.fails.store(false, Ordering::Relaxed);
    assert_status(&get(address, "/api/snapshot.json"), 200);
}

struct Panics;

impl Source for Panics {
    fn snapshot(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
        panic!("as a test wants it")
    }
}

#[test]
fn a_source_that_panics_takes_nothing_with_it() {
    let server = started_with(limits(), Arc::new(Panics));
    assert_status(&get(server.address(), "/healthz"), 503);
    assert_status(&get(server.address(), "/"), 200);
}

struct Healthy(Fake);

impl Source for Healthy {
    fn snapshot(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
        let mut snapshot = self.0.snapshot()?;
        snapshot.daemon.problems.clear();
        snapshot.ports.retain(|port| port.failure.is_none());
        Ok(snapshot)
    }
}

#[test]
fn health_is_what_the_operator_need_not_mend() {
    let (server, _) = started(limits());
    let answer = get(server.address(), "/healthz");
    assert_status(&answer, 503);
    assert!(answer.contains("\"about\":\"veth-old\""), "{answer}");
    let server = started_with(limits(), Arc::new(Healthy(Fake::default())));
    let answer = get(server.address(), "/healthz");
    assert_status(&answer, 200);
    let health =
        "{\"ok\":true,\"epoch\":7,\"ports_attached\":6,\"ports_failed\":0,\"policy_ok\":true";
    assert!(body(&answer).starts_with(health), "{answer}");
}

struct Withholding(Fake);

impl Source for Withholding {
    fn snapshot(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
        let mut snapshot = self.0.snapshot()?;
        snapshot.daemon.problems.clear();
        snapshot.ports.retain(|port| port.failure.is_none());
        snapshot.ports[0].unpromised = Some("there is no room".to_owned());
        Ok(snapshot)
    }
}

#[test]
fn a_port_that_cannot_promise_is_a_problem() {
    let server = started_with(limits(), Arc::new(Withholding(Fake::default())));
    let answer = get(server.address(), "/healthz");
    assert_status(&answer, 503);
    assert!(body(&answer).contains(r#"`\"ring\"`: there is no room"#), "{answer}");
    assert_eq!(metric(server.address(), "vcc_problems "), 1.0);
}

#[test]
fn every_metric_comes_over_the_wire() {
    let (server, _) = started(limits());
    let answer = get(server.address(), "/metrics");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
    // A trial has all its figures once connections send, which those of the fake do not.
    for metric in METRICS.iter().filter(|metric| !metric.name.starts_with("vcc_trial_")) {
        assert!(answer.contains(&format!("\n# TYPE {} ", metric.name)), "{}", metric.name);
    }
}

/// Its samples and types are those of OpenMetrics, and it is the only format that all readers know.
#[test]
fn who_prefers_openmetrics_reads_the_same() {
    let (server, _) = started(limits());
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;\
                   version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1\r\n\r\n";
    let answer = talk(server.address(), request.as_bytes());
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{answer}");
    assert!(answer.contains("\n# TYPE vcc_port_acked_bytes_total counter\n"), "{answer}");
}

#[test]
fn prometheus_accepts_the_metrics() {
    let (server, _) = started(limits());
    let answer = get(server.address(), "/metrics");
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = promtool.stderr(Stdio::piped()).spawn() else {
        return skip("promtool is not installed");
    };
    child.stdin.take().expect("its input").write_all(body(&answer).as_bytes()).expect("read");
    let output = child.wait_with_output().expect("an end");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_server_that_is_stopped_listens_no_more() {
    let (server, _) = started(limits());
    let address = server.address();
    let mut idle = connect(address);
    let complaint =
        serve_with(Options { listen: address, ..Options::default() }, Arc::<Fake>::default())
            .err()
            .expect("taken")
            .to_string();
    assert!(complaint.starts_with(&format!("cannot listen on {address}: ")), "{complaint}");
    server.stop();
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(response(&mut idle), "");
}
