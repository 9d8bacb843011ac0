//! The counters of a host's TCP: RFC 4022's in /proc/net/snmp, and Linux's own in /proc/net/netstat. They are
//! those of the thread's network namespace; without `thread-self`, of the process's.

use crate::error::{Doing, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

const FILES: [&str; 2] = ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"];
const TABLES: [&str; 2] = ["Tcp", "TcpExt"];

/// By the kernel's names. One that is missing is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TcpCounters(BTreeMap<String, u64>);

impl TcpCounters {
    /// # Errors
    /// The files cannot be read.
    pub fn read() -> Result<Self> {
        let read = |file| fs::read_to_string(file).doing(|| format!("read {file}"));
        let texts = FILES.map(read).into_iter().collect::<Result<Vec<String>>>()?;
        Ok(texts.iter().flat_map(|text| parse(text)).collect())
    }

    /// Those of another kernel. `text`: its /proc/net/snmp, and behind it its /proc/net/netstat.
    pub fn from_text(text: &str) -> Self {
        parse(text).collect()
    }

    /// What has been counted since then.
    pub fn since(mut self, then: &Self) -> Self {
        for (name, count) in &mut self.0 {
            *count = count.wrapping_sub(then.get(name));
        }
        self.0.retain(|_, count| *count > 0);
        self
    }

    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl FromIterator<(String, u64)> for TcpCounters {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(counts: I) -> Self {
        Self(counts.into_iter().collect())
    }
}

/// For each table a line of names and a line of values, both beginning with its name. A value that
/// is negative is no counter.
fn parse(text: &str) -> impl Iterator<Item = (String, u64)> + '_ {
    let lines = text.lines().zip(text.lines().skip(1));
    let rows = lines.filter_map(|(names, values)| {
        let (table, names) = names.split_once(':')?;
        let (of, values) = values.split_once(':')?;
        (table == of && TABLES.contains(&table)).then_some((names, values))
    });
    rows.flat_map(|(names, values)| names.split_whitespace().zip(values.split_whitespace()))
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Ip: Forwarding InReceives\nIp: 1 5\n\
                        Tcp: MaxConn RetransSegs\nTcp: -1 7\n\
                        TcpExt: TCPTimeouts TCPLossProbes\nTcpExt: 3 4\n";

    #[test]
    fn tables_of_tcp_are_read_by_their_names() {
        let counters: TcpCounters = parse(TEXT).collect();
        let known = ["RetransSegs", "TCPTimeouts", "TCPLossProbes", "InReceives", "MaxConn"];
        assert_eq!(known.map(|name| counters.get(name)), [7, 3, 4, 0, 0]);
        let later = TEXT.replace("3 4", "5 4");
        let grown = parse(&later).collect::<TcpCounters>().since(&counters);
        assert_eq!(grown, TcpCounters([("TCPTimeouts".to_owned(), 2)].into()));
    }

    #[test]
    fn a_console_may_print_something_before_them() {
        let text = format!("\n/ # {}/ # ", TEXT).replace('\n', "\r\n");
        let counters = TcpCounters::from_text(&text);
        assert_eq!(["RetransSegs", "TCPTimeouts"].map(|name| counters.get(name)), [7, 3]);
    }

    #[test]
    fn this_kernel_has_the_counters_that_are_measured() {
        let counters = TcpCounters::read().unwrap();
        for name in ["RetransSegs", "TCPTimeouts", "TCPLossProbes", "TCPLossUndo", "TCPDSACKUndo"] {
            assert!(counters.0.contains_key(name), "{name}");
        }
    }
}
