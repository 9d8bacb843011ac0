//! Admission of requests. A foreign page can have its own name resolve to this host and then
//! read the answers (DNS rebinding): the Host of a request has to be one of ours.

use std::net::IpAddr;

use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode};

use super::reply::Refused;
use crate::tally::Refusal;

pub struct Guard {
    host_names: Vec<String>,
    header_bytes: usize,
}

impl Guard {
    pub fn new(host_names: Vec<String>, header_bytes: usize) -> Self {
        Self { host_names, header_bytes }
    }

    /// `reached_at` is the local address of the connection.
    pub fn admit<B>(&self, request: &Request<B>, reached_at: IpAddr) -> Result<(), Refused> {
        if self.is_too_large(request) {
            return Err(Refused::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                Refusal::HeaderSize,
                format!("The header is larger than {} bytes", self.header_bytes),
            ));
        }
        let mut hosts = request.headers().get_all(HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        let host = host.filter(|_| more.is_none()).and_then(|host| host.to_str().ok());
        let Some(host) = host.and_then(|host| host.parse::<Authority>().ok()) else {
            return Err(Refused::new(
                StatusCode::BAD_REQUEST,
                Refusal::Host,
                "A request needs one Host header",
            ));
        };
        let also_asked = request.uri().authority();
        if ![Some(&host), also_asked].into_iter().flatten().all(|host| self.knows(host, reached_at))
        {
            return Err(Refused::new(
                StatusCode::MISDIRECTED_REQUEST,
                Refusal::Host,
                "This host has another name: ask by its address or by localhost",
            ));
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return Err(Refused::new(
                StatusCode::METHOD_NOT_ALLOWED,
                Refusal::Method,
                "Only GET and HEAD are answered",
            ));
        }
        Ok(())
    }

    fn is_too_large<B>(&self, request: &Request<B>) -> bool {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + 4);
        let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
        target + headers.sum::<usize>() > self.header_bytes
    }

    fn knows(&self, host: &Authority, reached_at: IpAddr) -> bool {
        let name = host.host();
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return address.is_loopback() || address.to_canonical() == reached_at.to_canonical();
        }
        let ours = |known: &str| name.eq_ignore_ascii_case(known);
        ours("localhost") || self.host_names.iter().any(|known| ours(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(host: &str, names: &[&str]) -> Option<StatusCode> {
        let guard = Guard::new(names.iter().map(|name| (*name).into()).collect(), 8192);
        let request = Request::get("/").header(HOST, host).body(()).expect("a request");
        let reached_at = "192.0.2.7".parse().expect("an address");
        guard.admit(&request, reached_at).err().map(|refused| refused.status)
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        for host in ["localhost", "LOCALHOST:9644", "127.0.0.1:9644", "[::1]:9644", "192.0.2.7"] {
            assert_eq!(status(host, &[]), None, "{host}");
        }
        let misdirected = Some(StatusCode::MISDIRECTED_REQUEST);
        for host in ["evil.example", "localhost.evil.example", "192.0.2.8", "[2001:db8::1]"] {
            assert_eq!(status(host, &[]), misdirected, "{host}");
        }
        assert_eq!(status("host7.example:9644", &["host7.example"]), None);
        assert_eq!(status("host8.example", &["host7.example"]), misdirected);
        for host in ["", "a b", "http://localhost/"] {
            assert_eq!(status(host, &[]), Some(StatusCode::BAD_REQUEST), "{host}");
        }
    }
}
