//! The file that lists the hosts.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Each has a thread of its own.
const MOST_HOSTS: usize = 1024;

/// Where a daemon answers over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Address(SocketAddr),
    /// Resolved at each read, because it may change.
    Name(String, u16),
    /// A socket that leads there, such as one that ssh forwards.
    Socket(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_usual = |port: u16| port == vcc_web::DEFAULT_LISTEN.port();
        match self {
            Self::Address(address) if is_usual(address.port()) => address.ip().fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::Name(name, port) if is_usual(*port) => f.write_str(name),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

pub fn read(path: &Path) -> anyhow::Result<Vec<Endpoint>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

/// A host a line; `#` begins a comment.
fn parse(text: &str) -> anyhow::Result<Vec<Endpoint>> {
    let mut hosts = Vec::new();
    let mut lines: HashMap<Endpoint, usize> = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let number = index + 1;
        let Some(host) = endpoint(line) else {
            let line = vcc_policy::text::shortened(line);
            bail!(
                "line {number}: `{line}` is not a host, like node1, 192.0.2.1:9644, [fd00::1]:9644 or \
                 /run/node1.sock"
            );
        };
        if let Some(before) = lines.insert(host.clone(), number) {
            bail!("line {number}: line {before} has the same host, {host}");
        }
        hosts.push(host);
    }
    match hosts.len() {
        0 => bail!("there is no host in it"),
        1..=MOST_HOSTS => Ok(hosts),
        count => bail!("{count} hosts; at most {MOST_HOSTS} are possible"),
    }
}

fn endpoint(text: &str) -> Option<Endpoint> {
    let usual = vcc_web::DEFAULT_LISTEN.port();
    if text.starts_with('/') {
        return Some(Endpoint::Socket(text.into()));
    }
    if let Ok(address) = text.parse() {
        return Some(Endpoint::Address(address));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(Endpoint::Address(SocketAddr::new(address, usual)));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)?),
        None => (text, usual),
    };
    let is_name_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_name = !name.is_empty() && name.bytes().all(is_name_byte);
    is_name.then(|| Endpoint::Name(name.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_address_a_name_or_a_socket() {
        let text = "# rack 1\nnode1\nnode2.example:80 # the old one\n\n192.0.2.1\n192.0.2.1:1\n\
                    fd00::1\n[fd00::2]\n[fd00::3]:99\n/run/node 3.sock\n";
        let hosts = parse(text).expect("hosts");
        let shown: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let expected = [
            "node1",
            "node2.example:80",
            "192.0.2.1",
            "192.0.2.1:1",
            "fd00::1",
            "fd00::2",
            "[fd00::3]:99",
            "/run/node 3.sock",
        ];
        assert_eq!(shown, expected);
        assert_eq!(hosts[2], Endpoint::Address("192.0.2.1:9644".parse().expect("an address")));
    }

    #[test]
    fn an_error_names_its_line() {
        let why = |text: &str| format!("{:#}", parse(text).expect_err("wrong"));
        assert!(
            why("a\nnode 1\n").starts_with("line 2: `node 1` is not a host"),
            "{}",
            why("a\nnode 1")
        );
        assert!(why("a:port").starts_with("line 1: `a:port` is not a host"));
        assert!(why("a:0").starts_with("line 1: `a:0`"));
        assert_eq!(why("a\n\na:9644\n"), "line 3: line 1 has the same host, a");
        assert_eq!(why("# none\n"), "there is no host in it");
        let many: String = (0..1025).map(|number| format!("n{number}\n")).collect();
        assert_eq!(why(&many), "1025 hosts; at most 1024 are possible");
    }
}
