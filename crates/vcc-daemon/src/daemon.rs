//! The one thread that decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use vcc_policy::Severity;
use vcc_port::{Governor, Port, SharedPolicy};
use vcc_web::Server;

use crate::control::protocol::{Answer, Applied, PolicyInForce, Request, Status};
use crate::control::{self, Abuse};
use crate::error::counted;
use crate::event::Event;
use crate::heartbeat::Heartbeat;
use crate::http::{self, Board};
use crate::links::{self, LinkNews};
use crate::policy_file::Source;
use crate::ports::Ports;
use crate::{Error, Result, RuntimeDir, journal, problems, signals};

/// What the operator says.
pub struct Options {
    /// The policy.
    pub config: PathBuf,
    pub runtime_dir: RuntimeDir,
    /// Where it is watched over HTTP, if at all.
    pub web: Option<vcc_web::Options>,
}

/// How often it looks at what nobody tells it, and says that it is alive.
const LOOK: Duration = Duration::from_millis(500);

/// Keeps the ports until SIGTERM. Nothing is touched before the policy is known to be good, and
/// all that is pinned to be of this version.
pub fn run(options: Options) -> Result<()> {
    let source = Source::read(&options.config)?;
    let Some(_governor) = Governor::become_it()? else { return Err(Error::SecondDaemon) };
    SharedPolicy::find()?;
    Port::require_understood()?;

    let (sender, events) = mpsc::channel();
    signals::listen(sender.clone())?;
    options.runtime_dir.create()?;
    links::watch(sender.clone())?;
    let abuse = control::listen(&options.runtime_dir, sender)?;
    let since = SystemTime::now();
    let board = Board::new(since);
    let web = watched(&options, &board, &abuse)?;
    let mut heartbeat = Heartbeat::new();
    let ports = Ports::adopt(&mut heartbeat)?;
    let mut daemon =
        Daemon { options, ports, source, since, last_refusal: None, abuse, heartbeat, board, web };
    daemon.begin()?;
    daemon.serve(&events)
}

struct Daemon {
    options: Options,
    ports: Ports,
    /// In force.
    source: Source,
    since: SystemTime,
    /// Of the last attempt to bring a policy into force, where it failed.
    last_refusal: Option<String>,
    abuse: Abuse,
    heartbeat: Heartbeat,
    board: Board,
    /// Ends with this.
    web: Option<Server>,
}

/// Before anything is touched: an address that is taken is a reason not to start.
fn watched(options: &Options, board: &Board, abuse: &Abuse) -> Result<Option<Server>> {
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
            journal::info(&format!("watched at http://{}/", web.address()));
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

    /// Until it is told to end.
    fn serve(&mut self, events: &Receiver<Event>) -> Result<()> {
        let mut looked = Instant::now();
        let lost = loop {
            let event = events.recv_timeout(LOOK.saturating_sub(looked.elapsed()));
            match event {
                _ if signals::is_ending() => break None,
                Ok(Event::Link(news)) => self.hear(&news),
                Ok(Event::Reload) => self.reload(),
                Ok(Event::Asked { request, answer }) => {
                    // Who asked may be gone.
                    let _ = answer.send(self.answer(request));
                }
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => break None,
                Ok(Event::Lost(what)) => break Some(what),
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
            "ending; everything stays attached, and connections go on as they are \
             (`vcc detach --all` takes vcc off)",
        );
        lost.map_or(Ok(()), |what| Err(Error::Lost { what }))
    }

    fn hear(&mut self, news: &LinkNews) {
        match news {
            LinkNews::Is(link) => self.ports.is(link, &self.source.policy),
            LinkNews::Gone { index } => self.ports.gone(*index),
            LinkNews::Overrun => {
                journal::notice("more news of devices than could be heard: looking at all");
                self.meet_links(false);
            }
        }
    }

    fn meet_links(&mut self, anew: bool) {
        match links::list() {
            Ok(links) => self.ports.are(&links, &self.source.policy, anew, &mut self.heartbeat),
            Err(error) => journal::error(&format!("{error}: only news of them is acted on")),
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

    /// In force from now on, or nothing has changed.
    fn put(&mut self, source: Source) -> Result<Applied> {
        // What was detached a moment ago is a port again by this.
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
            "{}; {} judged anew, {} us",
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
        journal::error(&format!("the policy that is in force stays: {error}"));
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

    /// Of a refusal the board knows already.
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
            ports: self.ports.held().map(Into::into).collect(),
            problems: problems.chain(refused).collect(),
            rejected_requests: self.abuse.count(),
        }
    }
}
