//! Both ends of a flow of requests, over this machine's loopback.

use super::*;
use crate::requests::Kind;
use crate::socket;
use socket2::SockAddr;
use std::io::Write;
use std::net::SocketAddr;
use std::thread;

const SEED: u64 = 3;
const SMALL: usize = 0;
const LARGE: usize = 1;

fn kinds() -> [Kind; 2] {
    let kind =
        |request_bytes, response_bytes| Kind { request_bytes, response_bytes, calls: Vec::new() };
    [kind(10, 20), kind(300_000, 2_000_000)]
}

fn ends() -> (Socket, Socket) {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = socket::listen(anywhere, "reno").unwrap();
    let to: SockAddr = listener.local_addr().unwrap();
    let client = socket::tcp(anywhere, "reno").unwrap();
    client.connect(&to).unwrap();
    let (server, _) = listener.accept().unwrap();
    for socket in [&client, &server] {
        socket.set_nonblocking(true).unwrap();
    }
    (client, server)
}

fn connect(asker: &mut Asker<'_>, answerer: &mut Answerer<'_>) {
    let (client, server) = ends();
    asker.connected(client).unwrap();
    answerer.accepted(server).unwrap();
}

/// Continues at both ends until the client has its response.
fn play(asker: &mut Asker<'_>, answerer: &mut Answerer<'_>) -> Vec<Served> {
    let (mut scratch, mut all) = (vec![0; CHUNK_BYTES], Vec::new());
    while !asker.advance(&mut scratch).unwrap() {
        let served = answerer.advance(&mut scratch).unwrap();
        if let Some(kind) = served.request {
            answerer.respond(kind);
        }
        all.extend([served].into_iter().filter(|it| *it != Served::default()));
    }
    all
}

const fn came(kind: usize) -> Served {
    Served { has_responded: false, request: Some(kind) }
}
const RESPONDED: Served = Served { has_responded: true, request: None };

#[test]
fn a_persistent_connection_takes_one_request_after_the_other() {
    let kinds = kinds();
    let mut asker = Asker::new(&kinds, 5, SEED);
    let mut answerer = Answerer::new(&kinds, 5, SEED, false);
    connect(&mut asker, &mut answerer);
    asker.ask(LARGE).unwrap();
    assert_eq!(play(&mut asker, &mut answerer), [came(LARGE), RESPONDED]);
    asker.start_measuring(1).unwrap();
    for _ in 0..3 {
        asker.ask(SMALL).unwrap();
        assert_eq!(play(&mut asker, &mut answerer), [came(SMALL), RESPONDED]);
    }
    asker.finish(1).unwrap();
    let (asker, answerer) = (asker.into_half(), answerer.into_half());
    assert!(asker.payload_ok && answerer.payload_ok);
    assert_eq!((asker.answered, asker.responses.len()), (3, 3), "one was before the window");
    assert_eq!(asker.sent_bytes, answerer.received_bytes);
    assert_eq!(asker.sent_bytes, 300_008 + 3 * 18);
    assert!(asker.sent_segs >= 3);
}

#[test]
fn a_server_closes_a_connection_that_is_for_one_request() {
    let kinds = kinds();
    let mut asker = Asker::new(&kinds, 5, SEED);
    let mut answerer = Answerer::new(&kinds, 5, SEED, true);
    asker.start_measuring(1).unwrap();
    for kind in [SMALL, LARGE, SMALL] {
        asker.ask(kind).unwrap();
        connect(&mut asker, &mut answerer);
        assert_eq!(play(&mut asker, &mut answerer), [came(kind), RESPONDED]);
        asker.close().unwrap();
    }
    assert_eq!(asker.into_half().answered, 3);
    let half = answerer.into_half();
    assert!(half.payload_ok);
    assert_eq!(half.received_bytes, 300_008 + 2 * 18);
}

/// The error of a client that a server of another kind answers.
fn answered_by(serve: impl FnOnce(Socket) + Send + 'static) -> String {
    let kinds = kinds();
    let mut asker = Asker::new(&kinds, 5, SEED);
    let (client, server) = ends();
    asker.connected(client).unwrap();
    asker.ask(SMALL).unwrap();
    let server = thread::spawn(move || serve(server));
    let error = failure(|scratch| asker.advance(scratch));
    server.join().unwrap();
    error
}

#[test]
fn a_client_tells_what_is_wrong_with_a_response() {
    let response = |kind: u64, bytes: usize| {
        let body = answers(SEED, 5).bytes(0, bytes);
        [&kind.to_le_bytes(), body].concat()
    };
    let closed = "flow 5: the server closed the connection before its response was complete";
    let half = answered_by(move |mut server| {
        server.write_all(&response(0, 7)).unwrap();
        server.shutdown(std::net::Shutdown::Write).unwrap();
    });
    assert_eq!(half, closed);
    let reset = answered_by(drop);
    // A request that it had not read makes it a reset.
    assert!(reset == closed || reset.contains("reset"), "{reset}");
    let other = answered_by(move |mut server| server.write_all(&response(1, 20)).unwrap());
    assert!(other.contains("a message with the header 0x1, which is none here"), "{other}");
    let long = answered_by(move |mut server| server.write_all(&response(0, 21)).unwrap());
    assert!(long.contains("more than the response"), "{long}");
}

/// Continues until it fails.
fn failure(mut advance: impl FnMut(&mut [u8]) -> Result<bool>) -> String {
    let mut scratch = vec![0; CHUNK_BYTES];
    loop {
        match advance(&mut scratch) {
            Ok(has_response) => assert!(!has_response),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn a_client_tells_what_nobody_asked_for_and_what_did_not_come() {
    let kinds = kinds();
    let asker = |client| {
        let mut asker = Asker::new(&kinds, 5, SEED);
        asker.connected(client).unwrap();
        asker
    };
    let (client, _server) = ends();
    let mut waiting = asker(client);
    waiting.ask(SMALL).unwrap();
    assert!(waiting.ask(SMALL).unwrap_err().to_string().contains("before the response"));
    assert!(waiting.finish(u64::MAX).is_ok());
    let late = waiting.finish(0).unwrap_err().to_string();
    assert!(late.contains("a request of kind 0 has had no response for"), "{late}");
    let (client, server) = ends();
    drop(server);
    let mut idle = asker(client);
    let gone = failure(|scratch| idle.advance(scratch));
    assert!(gone.contains("closed the connection between requests"), "{gone}");
    let (client, mut server) = ends();
    server.write_all(&[0]).unwrap();
    let mut idle = asker(client);
    let early = failure(|scratch| idle.advance(scratch));
    assert!(early.contains("a response that nobody asked for"), "{early}");
}

/// The error of a server to which a client of another kind sends this and then closes.
fn asked_with(data: &[u8]) -> String {
    let kinds = kinds();
    let mut answerer = Answerer::new(&kinds, 5, SEED, false);
    let (mut client, server) = ends();
    answerer.accepted(server).unwrap();
    client.write_all(data).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    failure(|scratch| answerer.advance(scratch).map(|_| false))
}

#[test]
fn a_server_tells_what_is_wrong_with_a_request() {
    let body = Stream::new(SEED, 5).bytes(0, 30);
    let request = |kind: u64, bytes: usize| [&kind.to_le_bytes(), &body[..bytes]].concat();
    let closed = "the client closed the connection before its response was complete";
    assert!(asked_with(&request(0, 3)).contains(closed));
    assert!(asked_with(&request(0, 10)).contains(closed));
    assert!(asked_with(&request(2, 10)).contains("the header 0x2, which is none here"));
    let twice = asked_with(&request(0, 30));
    assert!(twice.contains("asked again before it had its response"), "{twice}");
    let kinds = kinds();
    let mut answerer = Answerer::new(&kinds, 5, SEED, true);
    let connections = [ends(), ends()];
    let [first, second] = connections.map(|(_, server)| answerer.accepted(server));
    assert!(first.is_ok());
    assert!(second.unwrap_err().to_string().contains("before the one before it had ended"));
}

#[test]
fn a_changed_byte_is_seen_at_either_end() {
    let kinds = kinds();
    let mut asker = Asker::new(&kinds, 5, SEED);
    let mut answerer = Answerer::new(&kinds, 6, SEED, false);
    connect(&mut asker, &mut answerer);
    asker.ask(SMALL).unwrap();
    play(&mut asker, &mut answerer);
    assert!(!asker.into_half().payload_ok && !answerer.into_half().payload_ok);
}
