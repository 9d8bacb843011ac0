use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use vcc_port::Port;
use vcc_testing::{eventually, guest, on_a_host};

use crate::background::Background;
use crate::wire::{connect, ends, exchange};
use crate::{CommandOutput, command, vcc};

/// A mebibyte, as [`exchange`] sends each way.
const EXCHANGED_BYTES: &str = "1048576";

type Row = HashMap<String, String>;

const FILE: &str = "trace.csv";

/// `vcc trace` in the background, from when it records.
struct Running(Background);

impl Running {
    fn begin(arguments: &str) -> Self {
        let running = Self(Background::begin("trace", arguments, FILE));
        // The header is written when the recording has begun.
        eventually("a header", || !running.rows_text().is_empty());
        running
    }

    fn rows_text(&self) -> String {
        fs::read_to_string(self.0.path()).unwrap_or_default()
    }

    fn signal(&self, signal: libc::c_int) {
        self.0.signal(signal);
    }

    fn end(self) -> (String, Vec<Row>) {
        let (shown, directory) = self.0.wait();
        let text = fs::read_to_string(directory.path().join(FILE)).expect("a trace");
        (shown.well(), rows(&text))
    }
}

fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        header.iter().map(|name| name.to_string()).zip(cells).collect()
    };
    lines.map(row).collect()
}

fn is_traced() -> bool {
    let port = Port::open("port").expect("open");
    port.params().expect("parameters").0.trace != 0
}

#[test]
fn a_connection_is_recorded_to_its_end() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let (mut other_here, mut other_there) = connect(&guest);
        let [guest_end, peer_end] = ends(&here);
        let running = Running::begin(&format!("{guest_end}-{peer_end}"));
        exchange(&mut other_here, &mut other_there);
        exchange(&mut here, &mut there);
        drop(here);
        drop(there);
        let (shown, rows) = running.end();
        assert!(shown.starts_with(&format!("{} ACKs recorded: ", rows.len())), "{shown}");
        assert!(rows.iter().all(|row| row["guest"] == guest_end && row["peer"] == peer_end));
        // The first ACK that was recorded is where counting begins; the last is of the FIN.
        let una = |row: &Row| row["snd_una"].parse::<u32>().expect("a number");
        let (first, last) = (rows.first().expect("rows"), rows.last().expect("rows"));
        let acked = una(last).wrapping_sub(una(first));
        assert_eq!(last["acked_bytes"], acked.to_string());
        assert_eq!(last["flight_bytes"], "0");
        assert_eq!(last["alpha"], "", "reno-ecn has none");
        assert!(last["cwnd_segs"].parse::<u32>().expect("a number") >= 10);
        assert!(!is_traced());
    });
}

#[test]
fn a_port_is_recorded_until_ctrl_c() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port --underlay dctcp").well();
        let running = Running::begin("--device port");
        let complaint = vcc("trace --device port").complaint(1);
        assert!(complaint.contains("another `vcc trace` is running at `port`"), "{complaint}");
        let mut connections = [connect(&guest), connect(&guest)];
        for (here, there) in &mut connections {
            exchange(here, there);
        }
        let guests_ends = connections.each_ref().map(|(here, _)| ends(here)[0].clone());
        let are_reported = || {
            let rows = rows(&running.rows_text());
            let has_all_bytes = |end: &String| {
                let own = |row: &&Row| row.get("guest") == Some(end);
                let last = rows.iter().rfind(own).and_then(|row| row.get("acked_bytes"));
                last.is_some_and(|bytes| bytes == EXCHANGED_BYTES)
            };
            guests_ends.iter().all(has_all_bytes)
        };
        eventually("both are reported", are_reported);
        assert!(is_traced());
        running.signal(libc::SIGINT);
        let (_, rows) = running.end();
        assert!(rows.iter().any(|row| row["alpha"].parse::<f64>().is_ok()));
        assert!(!is_traced());
    });
}

#[test]
fn a_reader_that_leaves_ends_it_without_a_word() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let mut trace = command();
        trace.args(["trace", "--device", "port"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = trace.spawn().expect("the command");
        let mut reader = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        // One ACK is printed at once, though more might follow.
        here.write_all(b"x").expect("sent");
        there.read_exact(&mut [0]).expect("received");
        there.write_all(b"x").expect("sent");
        here.read_exact(&mut [0]).expect("received");
        line.clear();
        reader.read_line(&mut line).expect("a line");
        assert!(line.starts_with("0.000000,192.0.2.1:"), "{line}");
        drop(reader);
        let mut status = None;
        while status.is_none() {
            exchange(&mut here, &mut there);
            status = child.try_wait().expect("a status");
        }
        let shown: CommandOutput = child.wait_with_output().expect("its end").into();
        shown.well();
        assert!(!is_traced());
    });
}

#[test]
fn a_killed_trace_is_forgotten() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut here, mut there) = connect(&guest);
        let mut running = Running::begin("--device port");
        running.signal(libc::SIGKILL);
        running.0.child.wait().expect("its end");
        assert!(is_traced());
        vcc("ports").well();
        assert!(!is_traced());
        // Three ACKs, of which there are more.
        let again = Running::begin("--count 3 --device port");
        exchange(&mut here, &mut there);
        assert_eq!(again.end().1.len(), 3);
    });
}

#[test]
fn an_argument_that_is_not_one_connection_is_rejected() {
    on_a_host(|| {
        let guest = guest();
        vcc("attach port").well();
        let (here, _there) = connect(&guest);
        let (other, _other) = connect(&guest);
        let complaint = vcc("trace 192.0.2.9").complaint(1);
        assert!(complaint.starts_with("no connection 192.0.2.9 at a port"), "{complaint}");
        let complaint = vcc("trace 192.0.2.1 192.0.2.2").complaint(1);
        assert!(
            complaint.starts_with("192.0.2.1-192.0.2.2 matches several connections"),
            "{complaint}"
        );
        for end in [&here, &other] {
            let [guest, peer] = ends(end);
            assert!(complaint.contains(&format!("{guest}-{peer} at port")), "{complaint}");
            let one = vcc(&format!("trace {guest} --duration 0.01")).well();
            assert!(one.starts_with("time_s,guest,peer,"), "{one}");
        }
    });
}

#[test]
fn a_trace_ends_with_its_port() {
    on_a_host(|| {
        let _guest = guest();
        vcc("attach port").well();
        let running = Running::begin("--device port");
        vcc("detach port").well();
        assert_eq!(running.end().1, Vec::<Row>::new());
    });
}
