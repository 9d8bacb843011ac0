//! One file, packet by packet.

use std::sync::Arc;
use std::time::Duration;

use vcc_capture::{
    Capture, Connection, Content, Interface, Packet, Passed, Place, Problem, Replay, Replayed,
    Treatment, Vantage,
};
use vcc_command::output;
use vcc_port::Flow;
use vcc_view::{AppliedRule, Counts, FlowView, Growth, Rates};

use super::columns::Row;
use super::guesses::Guesses;

/// What a file has shown besides its connections.
pub struct Outcome {
    pub name: String,
    /// Without the connections.
    pub seen: Replayed,
    pub connections: usize,
    pub vantage: Option<Vantage>,
    /// With their offsets.
    pub problems: Vec<String>,
}

pub struct Input<'a> {
    pub name: String,
    /// Among the files.
    pub index: usize,
    pub content: Content<'a>,
}

/// Reads all that can be read. Problems are reported at once.
pub fn read(
    input: Input,
    mut replay: Replay,
    treatment: &Treatment,
    observe: &mut dyn FnMut(&Passed),
) -> (Outcome, Vec<Row>) {
    let Input { name, index, content } = input;
    let inside = if content.is_compressed { " (decompressed)" } else { "" };
    let mut problems = Vec::new();
    let mut interfaces = Vec::new();
    let mut guesses = Guesses::default();
    let mut observe = |passed: &Passed| {
        guesses.note(passed);
        observe(passed);
    };
    let mut complain = |problem: Problem| {
        output::complain(&format!("{name}{inside}, {problem}"));
        problems.push(problem.to_string());
    };
    match Capture::open(content.reader) {
        Err(problem) => complain(problem),
        Ok(mut capture) => {
            let mut packet = Packet::default();
            loop {
                match capture.next(&mut packet) {
                    Ok(false) => break,
                    Ok(true) => {
                        replay.take(&mut packet, &mut observe).unwrap_or_else(&mut complain);
                    }
                    Err(problem) => complain(problem),
                }
            }
            interfaces = capture.interfaces().to_vec();
        }
    }
    outcome(&name, index, replay.end(), &interfaces, problems, treatment, &guesses)
}

pub fn outcome(
    name: &str,
    index: usize,
    mut seen: Replayed,
    interfaces: &[Interface],
    problems: Vec<String>,
    treatment: &Treatment,
    guesses: &Guesses,
) -> (Outcome, Vec<Row>) {
    let connections = std::mem::take(&mut seen.connections);
    let once = || connections.iter().filter(|it| !it.is_turned);
    let vantage = Vantage::from_handshakes(once().map(|it| &it.life.handshake));
    let labels = labels(name, &seen.places, interfaces);
    let row = |connection: &Connection| {
        let guess = guesses.guess(connection);
        Row { guess, ..row(connection, index, &labels, treatment) }
    };
    let rows: Vec<Row> = connections.iter().map(row).collect();
    let name = name.to_owned();
    (Outcome { name, seen, connections: once().count(), vantage, problems }, rows)
}

/// The name of each place: that of the file, and where there are several that of interface and device.
fn labels(name: &str, places: &[Place], interfaces: &[Interface]) -> Vec<Arc<str>> {
    let label = |place: &Place| {
        if places.len() == 1 {
            return name.into();
        }
        let interface = interfaces.get(place.interface).map_or("", |it| &it.name);
        let device = place.device.map_or(String::new(), |device| format!(".{device}"));
        let tunnel = place.tunnel.map_or(String::new(), |tunnel| format!(", {}", tunnel.name()));
        format!("{name}:{interface}{device}{tunnel}").into()
    };
    places.iter().map(label).collect()
}

fn row(connection: &Connection, index: usize, labels: &[Arc<str>], treatment: &Treatment) -> Row {
    let Connection { place, is_turned, key, state, life, at_us } = *connection;
    let label = labels[place].clone();
    let flow = Flow {
        guest: key.guest(),
        peer: key.peer(),
        vlan: key.vlan(),
        inside: key.is_inside(),
        state,
    };
    let place = vcc_view::Place { index, key: label.clone(), port: label, tenant: None };
    let growth = Growth { acked_bytes: life.acked_bytes, counts: Counts::from_state(&state) };
    let rates = Rates::over(&growth, Duration::from_nanos(life.lasted_ns));
    let params = treatment.params_of(&state);
    let rule = treatment.rule_of(&state);
    let rule =
        rule.map(|it| AppliedRule { name: it.name.as_str().into(), is_current: true, params });
    // All are followed in shadow mode, whatever the mode of their rules.
    let flow =
        FlowView { rates, mode: None, ..FlowView::new(&place, &flow, rule, params, None, at_us) };
    Row { flow, life, is_turned, guess: None }
}
