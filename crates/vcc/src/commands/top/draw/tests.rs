use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::*;
use vcc_view::testing::{self, flow};
use vcc_view::{
    Cost, Filter, FlowView, GuestCpu, PortView, Rates, RuleView, Shares, Snapshot, Sort, Sums,
    Work, key_of,
};

fn busy(number: u16) -> FlowView {
    let mut flow = flow(&format!("192.0.2.1:{}", 40_000 + number), "198.51.100.9:5001");
    flow.rates = Some(Rates {
        goodput_bits_per_s: 1e6 * f64::from(number),
        marks_per_s: 12.0,
        reductions_per_s: 0.5,
        ..Default::default()
    });
    flow
}

fn port(name: &str) -> PortView {
    let rates = Rates {
        goodput_bits_per_s: 6e6,
        marks_per_s: 36.0,
        reductions_per_s: 1.5,
        ..Default::default()
    };
    PortView {
        sums: Sums { flows: 3, rates: Some(rates), ..Default::default() },
        ..testing::port(name)
    }
}

fn model(ports: usize, flows: u16) -> Model {
    let mut model = Model::new(Filter::default(), Sort::natural(key_of("goodput_bits_per_s")));
    for _ in 0..3 {
        model.update(Snapshot {
            ports: (0..ports).map(|number| port(&format!("veth{}", 3 + number))).collect(),
            flows: (1..=flows).map(busy).collect(),
            ..Default::default()
        });
    }
    model
}

fn screen(model: &Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(model, frame)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let cells = buffer.content.chunks(usize::from(width));
    cells
        .map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned())
        .collect()
}

#[test]
fn control_characters_are_escaped() {
    let mut model = model(0, 0);
    let mut odd = busy(1);
    odd.port = "a\x1b[31m\u{9b}".into();
    model.update(Snapshot { ports: vec![port(&odd.port)], flows: vec![odd], ..Default::default() });
    let lines = screen(&model, 200, 24);
    let escaped = "a\\u001b[31m\\u009b";
    assert!(lines[2].starts_with(&format!("{escaped}  dctcp ")), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains(escaped)).count(), 3, "{lines:#?}");
}

#[test]
fn eighty_by_twenty_four() {
    let lines = screen(&model(1, 3), 80, 24);
    let text = lines.join("\n");
    assert_eq!(lines[0], "vcc top  1 port  3 flows  6.00 Mbit/s  by rate");
    assert_eq!(
        &lines[1..3],
        [
            "PORT             UNDERLAY  MODE     FLOWS         RATE  MARKS/S  REDUC/S  RETR/S",
            "veth3            dctcp     enforce      3  6.00 Mbit/s   36.0/s   1.50/s     0/s",
        ],
        "{text}"
    );
    assert_eq!(
        &lines[4..6],
        [
            "GUEST            PEER                      RATE  LIMITED-BY  CWND    WINDOW",
            "192.0.2.1:40003  198.51.100.9:5001  3.00 Mbit/s  underlay      10  14.1 KiB",
        ],
        "{text}"
    );
    assert!(text.contains("192.0.2.1:40003 - 198.51.100.9:5001 at veth3"), "{text}");
    let limited = "limited by the underlay's window, 10 segments, 14.1 KiB: congestion avoidance";
    assert!(text.contains(limited), "{text}");
    assert!(text.contains("cwnd 10 x 1.41 KiB  ssthresh 8  window 14.1 KiB of 8.00 MiB"), "{text}");
    assert!(text.contains("window 14.1 KiB       ███"), "{text}");
    assert!(lines[23].starts_with("q quit  / filter"), "{text}");
}

#[test]
fn a_wide_terminal_has_all_columns() {
    let text = screen(&model(1, 1), 200, 50).join("\n");
    for name in
        ["PORT", "UNDERLAY", "STAGE", "FLIGHT", "SRTT", "ALPHA", "MARKS/S", "REDUC/S", "RETR/S"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(text.contains(" 12.0/s   0.50/s     0/s"), "{text}");
}

#[test]
fn a_guest_that_waits_for_its_cpu_is_seen() {
    let mut model = model(0, 0);
    let shares = Shares { waiting: 0.613, running: 0.32, idle: 0.067 };
    let cpu = Some(GuestCpu { machine: None, shares });
    model.update(Snapshot { ports: vec![PortView { cpu, ..port("vnet3") }], ..Default::default() });
    let lines = screen(&model, 140, 24);
    assert!(lines.iter().any(|line| line.contains("CPU-WAITS  CPU-RUNS")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("0.613     0.320")), "{lines:#?}");
}

#[test]
fn a_port_shows_what_it_costs() {
    let mut model = model(0, 0);
    let work =
        |frame_ns| Some(Work { frames_per_s: 1e4, frame_ns: Some(frame_ns), ..Work::default() });
    let cost = Some(Cost { from_guest: work(187.0), to_guest: work(1160.0), cpu: 0.0136 });
    model
        .update(Snapshot { ports: vec![PortView { cost, ..port("vnet3") }], ..Default::default() });
    let lines = screen(&model, 140, 24);
    assert!(lines.iter().any(|line| line.ends_with("COST  FROM-GUEST  TO-GUEST")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("0.014      187 ns   1.16 us")), "{lines:#?}");
}

#[test]
fn the_selected_flow_is_always_in_sight() {
    let mut model = model(1, 100);
    model.press(KeyCode::End.into());
    let text = screen(&model, 80, 24).join("\n");
    assert!(text.contains("\n192.0.2.1:40001 "), "the slowest is the last: {text}");
    model.press(KeyCode::Home.into());
    let text = screen(&model, 80, 24).join("\n");
    assert!(text.contains("\n192.0.2.1:40100 "), "{text}");
}

#[test]
fn many_ports_leave_room_for_flows() {
    let text = screen(&model(30, 5), 80, 24).join("\n");
    assert!(text.contains("... and 26 more: `vcc ports` lists them"), "{text}");
    assert!(text.contains("192.0.2.1:40005"), "{text}");
}

/// Of a quarter of the screen, the heading and the line below take two.
#[test]
fn the_busiest_ports_come_first() {
    let mut model = model(30, 5);
    let rates = Rates { goodput_bits_per_s: 9e6, ..Default::default() };
    let mut ports = std::mem::take(&mut model.ports);
    ports[29].sums = Sums { flows: 1, rates: Some(rates), ..Default::default() };
    model.update(Snapshot { ports, ..Default::default() });
    let lines = screen(&model, 80, 80);
    assert!(lines[2].starts_with("veth32 "), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("... and 12 more")), "{lines:#?}");
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (10, 3), (20, 10), (40, 12), (80, 17), (300, 100)] {
        for (ports, flows) in [(0, 0), (1, 0), (3, 1), (20, 50)] {
            let mut model = model(ports, flows);
            screen(&model, width, height);
            model.press(KeyCode::Char('?').into());
            screen(&model, width, height);
        }
    }
}

#[test]
fn notices_and_errors_are_shown() {
    let mut model = model(0, 0);
    assert!(screen(&model, 80, 24).join("\n").contains("vcc is attached nowhere"));
    model = self::model(1, 2);
    model.press(KeyCode::Char('/').into());
    model.press(KeyCode::Char('x').into());
    let lines = screen(&model, 80, 24);
    assert!(lines[0].contains("0 of 2 flows"), "{lines:?}");
    assert!(lines[23].starts_with("/x_"), "{lines:?}");
    assert!(lines.join("\n").contains("Esc shows all"), "{lines:?}");
    model.press(KeyCode::Esc.into());
    model.set_note(Some("vcc is not attached to `veth3`".into()));
    model.press(KeyCode::Char('p').into());
    let lines = screen(&model, 80, 24);
    assert!(lines[0].ends_with("PAUSED"), "{lines:?}");
    assert!(lines[23].starts_with("vcc is not attached"), "{lines:?}");
    model.press(KeyCode::Char('?').into());
    let text = screen(&model, 80, 24).join("\n");
    assert!(text.contains("Keys") && text.contains("l limited-by"), "{text}");
}

#[test]
fn rules_are_there_where_there_is_a_policy() {
    let plain = screen(&model(1, 3), 100, 30).join("\n");
    assert!(!plain.contains("RULE"), "{plain}");

    let mut model = Model::new(Filter::default(), Sort::natural(key_of("goodput_bits_per_s")));
    let rule = |number: u32| RuleView {
        connections: u64::from(number) * 10,
        ..testing::rule(&format!("rule-{number}"))
    };
    let flows: Vec<FlowView> = (1..=3).map(busy).collect();
    let mut rules: Vec<RuleView> = (0..9).map(rule).collect();
    let rates = Rates { goodput_bits_per_s: 4e6, marks_per_s: 24.0, ..Default::default() };
    rules[8].sums = Sums { flows: 2, rates: Some(rates), ..Default::default() };
    model.update(Snapshot { ports: vec![port("veth3")], rules, flows, ..Default::default() });
    let lines = screen(&model, 100, 30);
    let text = lines.join("\n");
    let at = lines.iter().position(|line| line.starts_with("RULE")).expect(&text);
    let first: Vec<&str> = lines[at + 1].split_whitespace().collect();
    assert_eq!(
        first,
        ["rule-8", "dctcp", "enforce", "2", "4.00", "Mbit/s", "80", "24.0/s", "0/s"],
        "{text}"
    );
    assert!(text.contains("more: `vcc policy show` lists them"), "{text}");
}
