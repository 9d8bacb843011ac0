//! One answer of a daemon over HTTP, within a time.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::list::Endpoint;

/// The answer about tens of thousands of ports is shorter.
const LONGEST_BYTES: usize = 64 << 20;
const PATH: &str = "/api/snapshot.json";
/// Of an error's text.
const SHOWN_CHARS: usize = 300;

/// The body of the answer, or why there is none.
pub async fn ask(endpoint: &Endpoint, within: Duration) -> Result<Bytes, String> {
    let answer = timeout(within, connect_and_ask(endpoint));
    answer.await.unwrap_or_else(|_| Err(format!("no answer within {} s", within.as_secs_f64())))
}

async fn connect_and_ask(endpoint: &Endpoint) -> Result<Bytes, String> {
    match endpoint {
        Endpoint::Socket(path) => {
            exchange(UnixStream::connect(path).await.map_err(in_words)?, "localhost").await
        }
        Endpoint::Address(address) => {
            let stream = TcpStream::connect(address).await.map_err(in_words)?;
            exchange(stream, &address.to_string()).await
        }
        Endpoint::Name(name, port) => {
            let stream = TcpStream::connect((name.as_str(), *port)).await.map_err(in_words)?;
            // By the address, which the daemon knows; it may not know the name.
            let address = stream.peer_addr().map_err(in_words)?;
            exchange(stream, &address.to_string()).await
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
) -> Result<Bytes, String> {
    let not_http = |error: hyper::Error| match error.is_parse() {
        true => "the answer is not HTTP/1: is it vcc's address?".to_owned(),
        false => error.to_string(),
    };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(not_http)?;
    // It ends with the connection, which ends with `sender`.
    tokio::spawn(connection);
    let request = Request::get(PATH).header(header::HOST, host).body(Empty::<Bytes>::new());
    let request = request.map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(not_http)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LONGEST_BYTES).collect().await;
    let body = body.map_err(|error| format!("the answer is incomplete: {error}"))?.to_bytes();
    if status != StatusCode::OK {
        let reason = String::from_utf8_lossy(&body);
        let reason: String =
            reason.lines().next().unwrap_or_default().chars().take(SHOWN_CHARS).collect();
        return Err(format!("answered {status}: {reason}"));
    }
    Ok(body)
}

fn in_words(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "connection refused: does the daemon run with --listen?".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// The answer to a request at a server that says `text` and closes.
    fn answer(text: &str) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
            let address = listener.local_addr().expect("an address");
            let serve = async {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(text.as_bytes()).await;
            };
            let endpoint = Endpoint::Address(address);
            let (answer, ()) = tokio::join!(ask(&endpoint, Duration::from_secs(30)), serve);
            answer.map(|body| String::from_utf8(body.to_vec()).expect("UTF-8"))
        })
    }

    #[test]
    fn only_a_whole_answer_has_a_body() {
        assert_eq!(answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), Ok("{}".to_owned()));
        assert_eq!(answer("HTTP/1.0 200 OK\r\n\r\n{}"), Ok("{}".to_owned()));
        let cut = answer("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}");
        assert!(
            cut.as_ref().is_err_and(|why| why.starts_with("the answer is incomplete")),
            "{cut:?}"
        );
        assert_eq!(
            answer("HTTP/1.1 503 Service Unavailable\r\n\r\ncannot read the ports: x\nmore"),
            Err("answered 503 Service Unavailable: cannot read the ports: x".to_owned())
        );
        let other = answer("SSH-2.0-OpenSSH\r\n\r\n");
        assert_eq!(other, Err("the answer is not HTTP/1: is it vcc's address?".to_owned()));
    }
}
