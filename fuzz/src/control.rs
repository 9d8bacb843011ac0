//! What a client sends to the daemon's control socket: it is read, in any parts, as one request or
//! refused with a reason, and a request means the same to the client and the daemon.

use std::io::{self, Read};

use vcc_daemon::Request;

use crate::input::Input;
use crate::steps;

/// Input bytes from here on stand for words, as far as there are any.
const WORDS_FROM: u8 = 0x80;

const WORDS: &[&str] = &[
    r#"{"request":"status"}"#,
    r#"{"request":"policy"}"#,
    r#"{"request":"apply"}"#,
    r#"{"request":"apply","policy":{"text":""#,
    r#"","file_name":""#,
    r#""}}"#,
    r#"{"request":"#,
    r#""request":"#,
    r#""policy":"#,
    r#""text":"#,
    r#""file_name":"#,
    r#""status""#,
    r#""apply""#,
    "null",
    "true",
    "1e999",
    "18446744073709551616",
    r"\u0000",
    r"\ud800",
    r"\u001b[2J",
    "\u{202e}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    r#"{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":"#,
];
/// As many bytes as a file's name may have.
const NAME: u8 = 0xfe;
const NAME_BYTES: usize = 4096;

/// A reason is quoted in the journal and in the answer.
const MOST_REASON_BYTES: usize = 400;

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let part_bytes = input.pick(&[usize::MAX, 1, 2, 3, 7, 64]);
    let sent = sent(input.rest());
    steps::count();
    let read = Request::read(&mut sent.as_slice());
    let mut parts = Parts { left: &sent, part_bytes, is_interrupted: false };
    assert_eq!(Request::read(&mut parts), read, "in parts of {part_bytes}");
    match read {
        Ok(Some(request)) => assert_understood(&request),
        Ok(None) => assert!(sent.is_empty(), "left out: {sent:?}"),
        Err(why) => assert!((1..=MOST_REASON_BYTES).contains(&why.len()), "{why}"),
    }
}

fn sent(bytes: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    for &byte in bytes {
        let word = byte.checked_sub(WORDS_FROM).and_then(|at| WORDS.get(usize::from(at)));
        match word {
            Some(word) => sent.extend_from_slice(word.as_bytes()),
            None if byte == NAME => sent.extend_from_slice(&[b'n'; NAME_BYTES]),
            None => sent.push(byte),
        }
    }
    sent
}

/// What a client sends for a request is that request.
fn assert_understood(request: &Request) {
    if let Request::Apply { policy: Some(policy) } = request {
        assert!(policy.file_name.len() <= NAME_BYTES, "{} bytes", policy.file_name.len());
    }
    let mut line = serde_json::to_vec(request).expect("JSON");
    assert!(!line.contains(&b'\n'), "{request:?}");
    line.push(b'\n');
    assert_eq!(Request::read(&mut line.as_slice()).as_ref(), Ok(&Some(request.clone())));
}

/// A few bytes at a time, with a signal before each.
struct Parts<'a> {
    left: &'a [u8],
    part_bytes: usize,
    is_interrupted: bool,
}

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most_bytes = self.part_bytes.min(buffer.len());
        self.left.read(&mut buffer[..most_bytes])
    }
}
