//! One answer of a daemon over HTTP, within a time.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::list::Endpoint;

/// The answer about tens of thousands of ports is shorter.
const LONGEST_BYTES: u64 = 64 << 20;
const PATH: &str = "/api/snapshot.json";

/// The body of the answer, or why there is none.
pub fn ask(endpoint: &Endpoint, within: Duration) -> Result<Vec<u8>, String> {
    let until = Instant::now() + within;
    let answer = match endpoint {
        Endpoint::Socket(path) => UnixStream::connect(path)
            .map_err(|error| in_words(&error, within))
            .and_then(|stream| exchange(Unix(stream), "localhost", until, within)),
        Endpoint::Address(address) => tcp(&[*address], until, within),
        Endpoint::Name(name, port) => {
            let found = (name.as_str(), *port).to_socket_addrs();
            let found = found.map_err(|error| format!("the name is not known: {error}"))?;
            tcp(&found.collect::<Vec<_>>(), until, within)
        }
    };
    body(&answer?)
}

fn tcp(
    addresses: &[std::net::SocketAddr],
    until: Instant,
    within: Duration,
) -> Result<Vec<u8>, String> {
    let mut last = "the name has no address".to_owned();
    for address in addresses {
        let connected = left(until).and_then(|left| TcpStream::connect_timeout(address, left));
        match connected {
            // By the address, which the daemon knows; it may not know the name.
            Ok(stream) => return exchange(stream, &address.to_string(), until, within),
            Err(error) => last = in_words(&error, within),
        }
    }
    Err(last)
}

/// What a stream of either kind has.
trait Stream: Read + Write {
    fn limit(&self, timeout: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn limit(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}

struct Unix(UnixStream);

impl Read for Unix {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Unix {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Stream for Unix {
    fn limit(&self, timeout: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(timeout))?;
        self.0.set_write_timeout(Some(timeout))
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// HTTP/1.0: the answer ends with the connection, and comes in one piece (RFC 1945).
fn exchange(
    mut stream: impl Stream,
    host: &str,
    until: Instant,
    within: Duration,
) -> Result<Vec<u8>, String> {
    let mut transfer = || -> io::Result<Vec<u8>> {
        stream.limit(left(until)?)?;
        stream.write_all(format!("GET {PATH} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            stream.limit(left(until)?)?;
            match stream.read(&mut part) {
                Ok(0) => return Ok(answer),
                Ok(count) => answer.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if answer.len() as u64 > LONGEST_BYTES {
                return Err(io::Error::other("the answer is longer than any of vcc's"));
            }
        }
    };
    transfer().map_err(|error| in_words(&error, within))
}

fn in_words(error: &io::Error, within: Duration) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("no answer within {} s", within.as_secs_f64())
        }
        io::ErrorKind::ConnectionRefused => {
            "connection refused: does the daemon run with --listen?".to_owned()
        }
        _ => error.to_string(),
    }
}

fn body(answer: &[u8]) -> Result<Vec<u8>, String> {
    const NOT_HTTP: &str = "the answer is not HTTP/1: is it vcc's address?";
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or(NOT_HTTP)?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let body = &answer[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
    let status = status.and_then(|rest| rest.split_once(' ')).map(|(_, status)| status);
    let status = status.ok_or(NOT_HTTP)?;
    if !status.starts_with("200") {
        let reason = String::from_utf8_lossy(&body[..body.len().min(300)]);
        let reason = reason.lines().next().unwrap_or_default();
        return Err(format!("answered {status}: {reason}"));
    }
    let length = lines.filter_map(|line| line.split_once(':'));
    let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: Option<usize> =
        length.filter_map(|(_, value)| value.trim().parse().ok()).next_back();
    if length.is_some_and(|length| length != body.len()) {
        return Err("the answer is incomplete".to_owned());
    }
    Ok(body.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_has_a_body() {
        let of =
            |answer: &str| body(answer.as_bytes()).map(|it| String::from_utf8(it).expect("UTF-8"));
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), Ok("{}".to_owned()));
        assert_eq!(of("HTTP/1.0 200 OK\r\n\r\n{}"), Ok("{}".to_owned()));
        assert_eq!(
            of("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}"),
            Err("the answer is incomplete".to_owned())
        );
        assert_eq!(
            of("HTTP/1.1 503 Service Unavailable\r\n\r\ncannot read the ports: x\nmore"),
            Err("answered 503 Service Unavailable: cannot read the ports: x".to_owned())
        );
        for other in ["", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1\r\n\r\n"] {
            assert_eq!(of(other), Err("the answer is not HTTP/1: is it vcc's address?".to_owned()));
        }
    }
}
