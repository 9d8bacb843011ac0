//! `vcc top --hosts`: the daemons of several hosts in one view.

mod list;
mod report;
mod request;

use std::io::{IsTerminal, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use anyhow::Context;
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;
use tokio::runtime::{self, Runtime};
use vcc_command::output;

use self::list::Endpoint;
use self::report::{Host, Report, View};
use crate::interrupt;
use crate::terminal::{self, Screen};

pub struct Options<'a> {
    pub file: &'a Path,
    pub json: bool,
    pub interval: Duration,
    /// For each answer.
    pub timeout: Duration,
    /// How many of the busiest ports are shown.
    pub busiest: usize,
}

/// The interval at which answers are looked for, which come without an event.
const LOOK: Duration = Duration::from_millis(100);

/// On a terminal until the user ends it, else once.
pub fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let mut hosts = Hosts::ask(list::read(options.file)?, options.timeout)?;
    if options.json || !stdin().is_terminal() || !stdout().is_terminal() {
        return once(&mut hosts, options);
    }
    let mut screen = Screen::take("add --json, or pipe it")?;
    let mut next = Instant::now() + options.interval;
    let mut scrolled = 0;
    let mut is_stale = true;
    while !interrupt::came() {
        is_stale |= hosts.take_answers();
        if is_stale {
            let view = View::new(&hosts.hosts, options.busiest);
            screen.terminal.draw(|frame| draw(&view, &mut scrolled, frame))?;
            is_stale = false;
        }
        let pause = next.saturating_duration_since(Instant::now()).min(LOOK);
        if let Some(event) = terminal::next_event(pause)? {
            is_stale = true;
            let Event::Key(key) = event else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => break,
                KeyCode::Char('c') if is_control => break,
                KeyCode::Up => scrolled = scrolled.saturating_sub(1),
                KeyCode::Down => scrolled = scrolled.saturating_add(1),
                KeyCode::PageUp => scrolled = scrolled.saturating_sub(10),
                KeyCode::PageDown => scrolled = scrolled.saturating_add(10),
                _ => {}
            }
        }
        if Instant::now() >= next {
            hosts.ask_again();
            next = Instant::now() + options.interval;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// 1 if a host did not answer.
fn once(hosts: &mut Hosts, options: &Options<'_>) -> anyhow::Result<ExitCode> {
    hosts.wait();
    let view = View::new(&hosts.hosts, options.busiest);
    if options.json {
        output::say_json(&view)?;
    } else {
        let busiest = view.busiest().map(|ports| format!("\nBusiest ports:\n{ports}"));
        output::say(&format!("{}{}", view.hosts(), busiest.unwrap_or_default()));
    }
    let all_answer = hosts.hosts.iter().all(|host| matches!(host.answer, Some(Ok(_))));
    Ok(if all_answer { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A task asks each, so that none waits for another.
struct Hosts {
    hosts: Vec<Host>,
    /// One for each; full while the host is being asked.
    ask: Vec<tokio::sync::mpsc::Sender<()>>,
    answers: Receiver<(usize, Result<Report, String>)>,
    asking: Option<Runtime>,
}

impl Hosts {
    fn ask(endpoints: Vec<Endpoint>, timeout: Duration) -> anyhow::Result<Self> {
        let asking = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let asking = asking.context("cannot start a thread that asks the hosts")?;
        let (send, answers) = mpsc::channel();
        let mut ask = Vec::new();
        for (index, endpoint) in endpoints.iter().enumerate() {
            let (wake, asked) = tokio::sync::mpsc::channel(1);
            asking.spawn(keep_asking(index, endpoint.clone(), timeout, asked, send.clone()));
            ask.push(wake);
        }
        let hosts = endpoints.into_iter().map(|endpoint| Host { endpoint, answer: None }).collect();
        let hosts = Self { hosts, ask, answers, asking: Some(asking) };
        hosts.ask_again();
        Ok(hosts)
    }

    fn ask_again(&self) {
        for wake in &self.ask {
            // A host that is still being asked is not asked twice.
            let _ = wake.try_send(());
        }
    }

    /// Returns whether there were any.
    fn take_answers(&mut self) -> bool {
        let mut any = false;
        while let Ok((index, answer)) = self.answers.try_recv() {
            self.hosts[index].answer = Some(answer);
            any = true;
        }
        any
    }

    /// Until all have answered, or cannot any more.
    fn wait(&mut self) {
        // Each is given up after the timeout.
        while self.hosts.iter().any(|host| host.answer.is_none()) && !interrupt::came() {
            if let Ok((index, answer)) = self.answers.recv_timeout(LOOK) {
                self.hosts[index].answer = Some(answer);
            }
        }
    }
}

impl Drop for Hosts {
    /// A resolver of names may take longer than anybody waits.
    fn drop(&mut self) {
        if let Some(asking) = self.asking.take() {
            asking.shutdown_background();
        }
    }
}

/// Ends when nobody listens any more.
async fn keep_asking(
    index: usize,
    endpoint: Endpoint,
    timeout: Duration,
    mut asked: tokio::sync::mpsc::Receiver<()>,
    send: Sender<(usize, Result<Report, String>)>,
) {
    while asked.recv().await.is_some() {
        let answer = request::ask(&endpoint, timeout).await;
        let answer = answer.and_then(|body| Report::from_json(&body));
        if send.send((index, answer)).is_err() {
            return;
        }
    }
}

fn draw(view: &View<'_>, scrolled: &mut u16, frame: &mut Frame) {
    let busiest = view.busiest().unwrap_or_default();
    let busiest_lines = (busiest.lines().count() as u16).min(frame.area().height / 2);
    let [head, hosts, title, ports, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(u16::from(busiest_lines > 0)),
        Constraint::Length(busiest_lines),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().bold();
    frame.render_widget(Line::styled(format!("vcc top  {}", view.summary()), bold), head);
    let shown = view.hosts();
    let rows = shown.lines().count() as u16;
    *scrolled = (*scrolled).min(rows.saturating_sub(hosts.height));
    let (heading, rest) = shown.split_once('\n').unwrap_or((&shown, ""));
    let rest = rest.lines().skip(usize::from(*scrolled));
    let lines = [Line::styled(heading, Style::new().reversed())];
    let lines = lines.into_iter().chain(rest.map(Line::from));
    frame.render_widget(Paragraph::new(Text::from_iter(lines)), hosts);
    frame.render_widget(Line::styled("Busiest ports", bold), title);
    frame.render_widget(Paragraph::new(busiest), ports);
    frame.render_widget("q: quit  up, down, page up, page down: scroll the hosts", keys);
}
