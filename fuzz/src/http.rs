//! What a browser or scraper sends to the web server: there is one whole answer or none, it is counted,
//! it has the headers that restrict a browser, and it is for those alone who ask by a name of this host.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Runtime;
use tokio::time;
use vcc_web::testing::{Fake, InMemory};
use vcc_web::{Limits, Options};

use crate::input::Input;
use crate::steps;

/// The server's address, and a name that it was given.
const REACHED_AT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const HOST_NAME: &str = "host7.example";

/// Input bytes from here on stand for words, as far as there are any.
const WORDS_FROM: u8 = 0x80;

const WORDS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "GET /metrics HTTP/1.1\r\n",
    "GET /api/flows.json?",
    "GET /api/",
    "GET ",
    "HEAD ",
    "POST ",
    "OPTIONS * HTTP/1.1\r\n",
    "GET http://localhost/ HTTP/1.1\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    "Host: localhost\r\n",
    "Host: localhost\r\n\r\n",
    "Host: 192.0.2.7:9644\r\n\r\n",
    "Host: [::1]:9644\r\n\r\n",
    "Host: host7.example\r\n\r\n",
    "Host: evil.example\r\n",
    "Host: ",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Connection: keep-alive\r\n",
    "Upgrade: h2c\r\n",
    "\r\n",
    "\r\n\r\n",
    "/api/snapshot.json",
    "/api/columns.json",
    "/api/history.json",
    "/healthz",
    "/style.css",
    "/page.js",
    "top=",
    "1000",
    "&sort=",
    "place",
    "cwnd",
    "&order=",
    "asc",
    "&filter=",
    "&flow=",
    "10.1.0.1",
    "%20",
    "%e2%80%ae",
    "%ff",
    "\u{202e}",
    "0\r\n\r\n",
];
/// A long run of one letter.
const LONG: u8 = 0xfe;
const LONG_BYTES: usize = 3000;

pub fn run(bytes: &[u8]) {
    thread_local! {
        static HOST: Host = Host::new();
    }
    let mut input = Input::new(bytes);
    let client = Client {
        part_bytes: input.pick(&[usize::MAX, 1, 5, 100]),
        pause: Duration::from_millis(input.pick(&[0, 0, 1, 100, 6000])),
        ending: input.pick(&[Ending::Reads, Ending::Reads, Ending::Shuts, Ending::Leaves]),
    };
    let sent = sent(input.rest());
    steps::count();
    HOST.with(|host| host.visit(&client, &sent));
}

fn sent(bytes: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    for &byte in bytes {
        let word = byte.checked_sub(WORDS_FROM).and_then(|at| WORDS.get(usize::from(at)));
        match word {
            Some(word) => sent.extend_from_slice(word.as_bytes()),
            None if byte == LONG => sent.extend_from_slice(&[b'a'; LONG_BYTES]),
            None => sent.push(byte),
        }
    }
    sent
}

/// How a client behaves, whatever it sends.
struct Client {
    part_bytes: usize,
    /// After each part.
    pause: Duration,
    ending: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Waits for the server's.
    Reads,
    /// Says that it has sent all.
    Shuts,
    Leaves,
}

impl Client {
    /// Returns what the server has answered.
    async fn talk(&self, stream: DuplexStream, sent: &[u8]) -> Vec<u8> {
        let (mut reads, mut writes) = tokio::io::split(stream);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let send = async move {
            for part in sent.chunks(self.part_bytes.min(sent.len().max(1))) {
                // The server may have closed the connection.
                if writes.write_all(part).await.is_err() {
                    break;
                }
                if !self.pause.is_zero() {
                    time::sleep(self.pause).await;
                }
            }
            match self.ending {
                Ending::Reads => {}
                Ending::Shuts => drop(writes.shutdown().await),
                Ending::Leaves => drop(stop.send(())),
            }
        };
        let receive = async move {
            let mut answer = Vec::new();
            tokio::select! {
                // A client that leaves has read nothing that counts.
                Ok(()) = stopped => answer.clear(),
                read = reads.read_to_end(&mut answer) => drop(read.expect("memory can be read")),
            }
            answer
        };
        tokio::join!(send, receive).1
    }
}

/// A host with its server.
struct Host {
    runtime: Runtime,
    server: InMemory,
}

impl Host {
    fn new() -> Self {
        // Time passes at once where all wait for it.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let limits = Limits { fresh_for: Duration::MAX, ..Limits::default() };
        let host_names = vec![HOST_NAME.to_owned()];
        let options = Options { host_names, limits, ..Options::default() };
        Host { runtime, server: InMemory::new(options, Arc::new(Fake::default())) }
    }

    fn visit(&self, client: &Client, sent: &[u8]) {
        let before = self.counts();
        let (ours, theirs) = duplex(1 << 16);
        let answer = self.runtime.block_on(async {
            let serve = self.server.serve(theirs, REACHED_AT);
            tokio::join!(serve, client.talk(ours, sent)).1
        });
        let counted: Vec<_> =
            self.counts().iter().zip(before).map(|(now, was)| now - was).collect();
        let [answered, refused] = [counted[0], counted[1..].iter().sum()];
        assert!(answered + refused <= 1, "counted for one connection: {counted:?}");
        if answer.is_empty() {
            return;
        }
        assert_eq!(answered + refused, 1, "counted for an answer: {counted:?}");
        Answer::read(&answer).assert_right(sent);
    }

    /// Answered, and refused by reason.
    fn counts(&self) -> Vec<u64> {
        let refused = self.server.refused().map(|(_, count)| count);
        std::iter::once(self.server.answered()).chain(refused).collect()
    }
}

struct Answer<'a> {
    status: u16,
    /// With lower-case names.
    headers: Vec<(String, &'a str)>,
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("an answer without end: {bytes:?}"));
        let head = std::str::from_utf8(&bytes[..end]).expect("text");
        let mut lines = head.split("\r\n");
        let first = lines.next().expect("a line");
        let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        let status = status.and_then(|status| status.parse().ok());
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?}"));
            (name.to_ascii_lowercase(), value)
        });
        Answer {
            status: status.unwrap_or_else(|| panic!("{first:?}")),
            headers: headers.collect(),
            body: &bytes[end + 4..],
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other == name);
        let value = found.next().map(|(_, value)| *value);
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    fn assert_right(&self, sent: &[u8]) {
        let asks_for = |word: &str| {
            let has = |window: &[u8]| window.eq_ignore_ascii_case(word.as_bytes());
            sent.windows(word.len()).any(has)
        };
        let bytes = self.header("content-length").map(|bytes| bytes.parse::<usize>());
        match bytes {
            Some(bytes) if !self.body.is_empty() || !asks_for("HEAD") => {
                assert_eq!(bytes, Ok(self.body.len()), "{:?}", self.headers);
            }
            // Of an answer to HEAD, or to what is no request.
            _ => assert!(self.body.is_empty(), "{:?}", self.headers),
        }
        if !self.body.is_empty() || self.status == 200 {
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("cache-control", "no-store"),
                ("cross-origin-resource-policy", "same-origin"),
            ] {
                assert_eq!(self.header(name), Some(value));
            }
            let policy = self.header("content-security-policy").expect("a policy");
            assert!(policy.starts_with("default-src 'none'"), "{policy}");
        }
        let is_json = self.header("content-type") == Some("application/json");
        match self.status {
            // Its health: the host has problems.
            503 if is_json => {}
            200 => {
                let names = ["localhost", "127.", "[", "192.0.2.7", HOST_NAME];
                assert!(names.into_iter().any(asks_for), "answered to a stranger's name");
                assert!(asks_for("GET ") || asks_for("HEAD "), "another method");
            }
            400 | 404 | 405 | 414 | 421 | 431 => {}
            status => panic!("status {status}"),
        }
        let text = std::str::from_utf8(self.body).expect("text");
        if is_json && !text.is_empty() {
            serde_json::from_str::<serde::de::IgnoredAny>(text).expect("JSON");
        }
    }
}
