//! The thread that decides. All others only wait and tell it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use vcc_policy::Severity;
use vcc_port::{Governor, Port, SharedPolicy};
use vcc_web::Server;

use crate::control::protocol::{Answer, Applied, PolicyInForce, PortStatus, Request, Status};
use crate::control::{self, Abuse};
use crate::error::counted;
use crate::heartbeat::Heartbeat;
use crate::http::{self, Board};
use crate::links::{self, LinkNews};
use crate::policy_file::Source;
use crate::ports::{Held, Ports};
use crate::{Error, Result, RuntimeDir, allocator, journal, problems, signals};

/// The options of `vcc run`.
pub struct Options {
    /// The file of the policy.
    pub config: PathBuf,
    pub runtime_dir: RuntimeDir,
    /// The web server's, if there is to be one.
    pub web: Option<vcc_web::Options>,
}

/// Interval at which ports are checked and the watchdog is notified.
const LOOK: Duration = Duration::from_millis(500);

/// Keeps the ports until SIGTERM. Nothing is changed before the policy has been checked, and the
/// version of all that is pinned.
pub fn run(options: Options) -> Result<()> {
    allocator::use_one_heap();
    let source = Source::read(&options.config)?;
    let Some(_governor) = Governor::become_it()? else { return Err(Error::SecondDaemon) };
    SharedPolicy::find()?;
    Port::require_understood()?;

    let (sender, events) = mpsc::channel();
    let tell = move |event| sender.send(event).is_ok();
    let signalled = tell.clone();
    signals::listen(move |asked| signalled(Event::Signal(asked)))?;
    let path = options.runtime_dir.path();
    let created = options.runtime_dir.create();
    created.map_err(|e| Error::system(format!("use {}", path.display()), e))?;
    let changed = tell.clone();
    links::watch(move |news| changed(Event::Link(news)))?;
    let asked = move |request, answer| tell(Event::Asked { request, answer });
    let abuse = control::listen(&options.runtime_dir, asked)?;
    let since = SystemTime::now();
    let board = Board::new(since);
    let web = start_web(&options, &board, &abuse)?;
    let mut heartbeat = Heartbeat::new();
    let ports = Ports::adopt(&mut heartbeat)?;
    let mut daemon =
        Daemon { options, ports, source, since, last_refusal: None, abuse, heartbeat, board, web };
    daemon.begin()?;
    daemon.serve(&events)
}

enum Event {
    Link(LinkNews),
    Signal(signals::Asked),
    Asked { request: Request, answer: Sender<Answer> },
}

struct Daemon {
    options: Options,
    ports: Ports,
    /// The policy in force.
    source: Source,
    since: SystemTime,
    /// Why the last policy was refused, if it was.
    last_refusal: Option<String>,
    abuse: Abuse,
    heartbeat: Heartbeat,
    board: Board,
    /// Stops when dropped.
    web: Option<Server>,
}

/// Starts the web server. If its address is in use, the daemon does not start.
fn start_web(options: &Options, board: &Board, abuse: &Abuse) -> Result<Option<Server>> {
    let Some(web) = options.web.clone() else { return Ok(None) };
    let source = http::Source { board: board.clone(), abuse: abuse.clone() };
    Ok(Some(vcc_web::serve_with(web, Arc::new(source))?))
}

impl Daemon {
    fn begin(&mut self) -> Result<()> {
        self.ports.apply(&self.source.policy)?;
        self.meet_links(true);
        let told = self.summary();
        journal::notice(&told);
        if let Some(web) = &self.web {
            journal::info(&format!("web page at http://{}/", web.address()));
        }
        self.board.policy(&self.source.policy, &told);
        self.tell_problems();
        self.heartbeat.ready(&told);
        Ok(())
    }

    fn summary(&self) -> String {
        let ports = counted(self.ports.held().count(), "port");
        let rules = self.source.policy.count();
        format!("{ports} under {}: {rules}, epoch {}", self.source.file_name, self.ports.epoch())
    }

    /// Returns when the daemon is told to end.
    fn serve(&mut self, events: &Receiver<Event>) -> Result<()> {
        let mut looked = Instant::now();
        let lost = loop {
            let event = events.recv_timeout(LOOK.saturating_sub(looked.elapsed()));
            match event {
                _ if signals::is_ending() => break None,
                Ok(Event::Link(LinkNews::Is(link))) => self.ports.is(&link, &self.source.policy),
                Ok(Event::Link(LinkNews::Gone { index })) => self.ports.gone(index),
                Ok(Event::Link(LinkNews::Overrun)) => {
                    journal::notice("lost news of network devices: listing them again");
                    self.meet_links(false);
                }
                Ok(Event::Link(LinkNews::Lost(why))) => break Some(why),
                Ok(Event::Signal(signals::Asked::Reload)) => self.reload(),
                Ok(Event::Signal(signals::Asked::End)) => break None,
                Ok(Event::Asked { request, answer }) => {
                    // The client may have gone.
                    let _ = answer.send(self.answer(request));
                }
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if looked.elapsed() >= LOOK {
                self.ports.look_around(&self.source.policy);
                self.tell_problems();
                looked = Instant::now();
            }
            self.heartbeat.beat();
        };
        self.heartbeat.ending();
        journal::notice(
            "ending: everything stays attached, and connections are not affected \
             (`vcc detach --all` removes vcc)",
        );
        lost.map_or(Ok(()), |what| Err(Error::Lost { what }))
    }

    fn meet_links(&mut self, anew: bool) {
        match links::list() {
            Ok(links) => self.ports.are(&links, &self.source.policy, anew, &mut self.heartbeat),
            Err(error) => journal::error(&format!(
                "{error}: until the next reload, only devices that change are seen"
            )),
        }
    }

    fn reload(&mut self) {
        self.heartbeat.reloading();
        let result = Source::read(&self.options.config).and_then(|source| self.put(source));
        if let Err(error) = result {
            self.refuse(&error);
        }
        let told = self.summary();
        self.heartbeat.ready(&told);
    }

    /// Puts a policy in force. An error changes nothing.
    fn put(&mut self, source: Source) -> Result<Applied> {
        // A device that was detached a moment ago becomes a port again.
        self.ports.catch_up(&self.source.policy);
        let began = Instant::now();
        let flows = self.ports.apply(&source.policy)?;
        let took_us = began.elapsed().as_micros() as u64;
        let warnings: Vec<String> = source.warnings.iter().map(ToString::to_string).collect();
        self.source = source;
        self.last_refusal = None;
        self.meet_links(true);
        self.board.policy(&self.source.policy, &self.summary());
        self.tell_problems();
        journal::notice(&format!(
            "{}; {} judged again, {} us",
            self.summary(),
            counted(flows as usize, "connection"),
            took_us
        ));
        Ok(Applied {
            file_name: self.source.file_name.clone(),
            epoch: self.ports.epoch(),
            rules: self.source.policy.rules().len(),
            has_default: self.source.policy.has_default(),
            ports: self.ports.held().count(),
            flows,
            took_us,
            warnings,
            problems: problems::of(&self.ports).into_iter().map(|problem| problem.what).collect(),
        })
    }

    fn refuse(&mut self, error: &Error) {
        journal::error(&format!("the policy in force stays: {error}"));
        if let Error::BadPolicy { problems, .. } = error {
            for problem in problems.problems.iter().filter(|p| p.severity == Severity::Error) {
                let vcc_policy::Problem { file_name, line, column, message, .. } = problem;
                journal::error(&format!("{file_name}:{line}:{column}: {message}"));
            }
        }
        self.board.refused(&error.to_string());
        self.last_refusal = Some(error.to_string());
        self.tell_problems();
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Apply { policy } => {
                let source = match policy {
                    Some(policy) => Source::parse(policy.text, &policy.file_name),
                    None => Source::read(&self.options.config),
                };
                match source.and_then(|source| self.put(source)) {
                    Ok(applied) => Answer::Applied(applied),
                    Err(error) => {
                        self.refuse(&error);
                        Answer::of_error(&error)
                    }
                }
            }
            Request::Status => {
                self.ports.catch_up(&self.source.policy);
                Answer::Status(self.status())
            }
            Request::Policy => Answer::Policy(PolicyInForce {
                text: self.source.text.clone(),
                file_name: self.source.file_name.clone(),
                epoch: self.ports.epoch(),
            }),
        }
    }

    /// Refused policies are not among these: see [`Self::refuse`].
    fn tell_problems(&self) {
        self.board.problems(problems::of(&self.ports), self.ports.attach_failures());
    }

    fn status(&self) -> Status {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let refused = self.last_refusal.iter();
        let refused = refused.map(|why| format!("the last policy was refused: {why}"));
        let problems = problems::of(&self.ports).into_iter().map(|problem| problem.what);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since_unix_s: since.as_secs(),
            config: self.options.config.display().to_string(),
            policy: self.source.file_name.clone(),
            epoch: self.ports.epoch(),
            rules: self.source.policy.rules().len(),
            has_default: self.source.policy.has_default(),
            ports: self.ports.held().map(port_status).collect(),
            problems: problems.chain(refused).collect(),
            rejected_requests: self.abuse.count(),
        }
    }
}

fn port_status(held: &Held) -> PortStatus {
    PortStatus {
        device: held.port.device().to_owned(),
        index: held.index,
        tenant: held.tenant.clone(),
        draining: held.draining,
    }
}
