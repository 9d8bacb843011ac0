//! Clients, a server that asks others, and those others, here all in one guest.

use crate::world::{ADDRESSES, idle_alone, namespace, reports, start_agent};
use socket2::Socket;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use vcc_traffic::plan::{FlowToReceive, FlowToSend, GuestPlan, Listener};
use vcc_traffic::report::{ReceiverHalf, Report, SenderHalf};
use vcc_traffic::requests::{Call, ClientPlan, Kind, RequestsPlan};
use vcc_traffic::system::now_ns;
use vcc_traffic::{Connections, Pattern, Requests};

const MS: u64 = 1_000_000;
/// For the program to start, however busy the machine is.
const LEAD_NS: u64 = 2_000 * MS;
const SEED: u64 = 4;
const CLIENTS: usize = 3;
/// The kinds, and the numbers of the groups of flows.
const PAGE: usize = 0;
const ROW: usize = 1;
const IMAGE: usize = 2;
const DATABASE: usize = 1;
const FILES: usize = 2;
const PORTS: [u16; 3] = [5001, 5002, 5003];
const TIMEOUT_MS: u32 = 50;

fn requests(connections: Connections) -> Pattern {
    let timeout_ms = TIMEOUT_MS.try_into().unwrap();
    Pattern::Requests(Requests { connections, think_ms: 0, strobe: false, timeout_ms })
}

/// Adds a flow of the guest to itself.
fn add_flow(plan: &mut GuestPlan, port: u16, pattern: Pattern) -> usize {
    let flow = plan.sends.len();
    let from_port = 20_000 + flow as u16;
    let (connects_at_ns, seed) = (plan.measure.start_ns - 100 * MS, SEED);
    plan.sends.push(FlowToSend {
        flow,
        to: (ADDRESSES[0], port).into(),
        from_port,
        congestion_control: "reno".into(),
        pattern,
        cwnd_clamp_segs: None,
        seed,
        connects_at_ns,
        joins_at_ns: connects_at_ns,
        leaves_at_ns: None,
    });
    let is_introduced = false;
    plan.receives.push(FlowToReceive { flow, port, from_port, is_introduced, pattern, seed });
    flow
}

/// A page takes two rows, one after the other, and two images at once. The file store has a
/// connection for each image.
fn plan() -> GuestPlan {
    let start_ns = now_ns() + LEAD_NS;
    let mut plan = idle_alone(start_ns, start_ns + 500 * MS);
    let listener = |port| Listener { port, congestion_control: "reno".into() };
    plan.listeners = PORTS.map(listener).into();
    let kind = |response_bytes, calls| Kind { request_bytes: 100, response_bytes, calls };
    let rows = Call { kind: ROW, group: DATABASE, count: 2, at_once: 1 };
    let images = Call { kind: IMAGE, group: FILES, count: 2, at_once: 2 };
    plan.requests = RequestsPlan {
        kinds: vec![kind(300_000, vec![rows, images]), kind(4000, vec![]), kind(100_000, vec![])],
        serves_at_once: None,
        ..RequestsPlan::default()
    };
    for seed in 1..=CLIENTS {
        let flow = add_flow(&mut plan, PORTS[0], requests(Connections::Persistent));
        plan.requests.clients.push(ClientPlan {
            flows: vec![flow],
            asks: vec![(PAGE, 1)],
            think_ms: 1,
            starts_at_ns: start_ns - 50 * MS,
            seed: seed as u64,
        });
    }
    let database = add_flow(&mut plan, PORTS[1], requests(Connections::Persistent));
    let files = add_flow(&mut plan, PORTS[2], requests(Connections::New));
    plan.requests.pools = [(DATABASE, vec![database]), (FILES, vec![files])].into();
    plan
}

#[test]
fn a_tier_asks_others_before_it_responds() {
    let Some(guest) = namespace() else { return };
    let (status, mut all) = reports(start_agent(&guest, &plan()));
    assert_eq!(all.pop(), Some(Report::Whole { lines: 2 * (CLIENTS + 2) + 1 }), "{status} {all:?}");
    let senders = all.iter().filter_map(|report| match report {
        Report::Sender(half) => Some(half),
        _ => None,
    });
    let senders: Vec<&SenderHalf> = senders.collect();
    assert!(senders.iter().all(|half| half.payload_ok && half.answered > 0), "{senders:?}");
    let pages: u64 = senders[..CLIENTS].iter().map(|half| half.answered).sum();
    for backend in &senders[CLIENTS..] {
        // Pages that were under way at the start or at the end.
        assert!(backend.answered.abs_diff(2 * pages) <= 2 * CLIENTS as u64, "{pages} {backend:?}");
    }
    let receivers = all.iter().filter_map(|report| match report {
        Report::Receiver(half) => Some(half),
        _ => None,
    });
    assert!(receivers.clone().all(|half: &ReceiverHalf| half.payload_ok));
    assert_eq!(receivers.count(), CLIENTS + 2);
}

/// The problem that a guest reports whose database is this thread.
#[track_caller]
fn problem_with(serve: impl FnOnce(Socket) + Send + 'static) -> Option<String> {
    let guest = namespace()?;
    let mut plan = plan();
    plan.listeners.retain(|listener| listener.port != PORTS[1]);
    plan.receives.retain(|flow| flow.port != PORTS[1]);
    let listener = guest.inside(|| TcpListener::bind(("0.0.0.0", PORTS[1]))).unwrap().unwrap();
    let database = thread::spawn(move || serve(listener.accept().unwrap().0.into()));
    let (status, reports) = reports(start_agent(&guest, &plan));
    // It may wait for a guest that has never connected.
    drop(guest.inside(|| TcpStream::connect((ADDRESSES[0], PORTS[1]))).unwrap());
    match reports.as_slice() {
        [Report::Error { problem }] if status.code() == Some(1) => {
            database.join().unwrap();
            Some(problem.clone())
        }
        other => panic!("{status}, {other:?}"),
    }
}

#[test]
fn a_backend_that_closes_or_lies_or_is_silent_is_reported() {
    let closing = problem_with(|mut connection| {
        connection.read_exact(&mut [0; 108]).unwrap();
        connection.write_all(&[ROW as u8, 0, 0]).unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
        let _ = connection.read(&mut [0]);
    });
    let Some(closing) = closing else { return };
    let expected = "flow 3: the server closed the connection before its response was complete";
    assert_eq!(closing, expected);
    let lying = problem_with(|mut connection| {
        connection.read_exact(&mut [0; 108]).unwrap();
        connection.write_all(&7_u64.to_le_bytes()).unwrap();
        let _ = connection.read(&mut [0]);
    });
    let Some(lying) = lying else { return };
    assert!(lying.contains("the header 0x7, which is none here"), "{lying}");
    let silent = problem_with(|mut connection| {
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let Some(silent) = silent else { return };
    assert!(silent.contains("has had no response for"), "{silent}");
}

#[test]
fn a_backend_that_is_not_there_is_reported() {
    let Some(guest) = namespace() else { return };
    let mut plan = plan();
    plan.listeners.retain(|listener| listener.port != PORTS[2]);
    plan.receives.retain(|flow| flow.port != PORTS[2]);
    let (status, reports) = reports(start_agent(&guest, &plan));
    let [Report::Error { problem }] = reports.as_slice() else { panic!("{status}, {reports:?}") };
    assert!(problem.contains("to 10.77.0.1:5003: Connection refused"), "{problem}");
}
