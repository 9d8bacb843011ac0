//! The deciding thread. All others wait for events and forward them to it.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use vcc_kube::Agent;
use vcc_policy::Severity;
use vcc_port::links::{self, LinkNews};
use vcc_port::{Governor, Inherited, Port, Predecessor, SharedPolicy};
use vcc_web::Server;
use vcc_web::snapshot::Problem;

use crate::control::protocol::{
    Answer, Applied, PolicyInForce, PortStatus, RecordsStatus, Request, Status,
};
use crate::control::{self, Abuse};
use crate::error::counted;
use crate::heartbeat::Heartbeat;
use crate::http::{self, Board};
use crate::journal::LogLevel;
use crate::kubernetes;
use crate::origin::Origin;
use crate::policy_file::Source;
use crate::ports::{KeptPort, Ports, guests};
use crate::record_counts::State;
use crate::records::{Recording, RecordsOptions};
use crate::{Error, Result, RuntimeDir, allocator, journal, problems, signals};

/// The options of `vcc run`.
pub struct Options {
    pub origin: Origin,
    /// Up to which level events are logged, until a request changes it.
    pub log_level: LogLevel,
    pub runtime_dir: RuntimeDir,
    /// The web server's; None without one.
    pub web: Option<vcc_web::Options>,
    /// None: connections are not recorded.
    pub records: Option<RecordsOptions>,
}

/// Interval at which ports are checked and the watchdog is notified.
const LOOK: Duration = Duration::from_millis(500);

/// Keeps the ports until SIGTERM. Changes nothing before the policy and the version of the pinned
/// maps have been checked.
pub fn run(options: Options) -> Result<()> {
    allocator::use_one_heap();
    journal::begin(options.log_level);
    let source = options.origin.begin()?;
    let Some(_governor) = Governor::become_it()? else { return Err(Error::SecondDaemon) };
    let is_waiting = matches!(options.origin, Origin::Kubernetes(_));
    let has_inherited = inherit(&source, is_waiting)?;
    if has_inherited {
        require_understood()?;
    }

    let (sender, events) = mpsc::channel();
    let send = move |event| sender.send(event).is_ok();
    let signalled = send.clone();
    signals::listen(move |asked| signalled(Event::Signal(asked)))?;
    let path = options.runtime_dir.path();
    let created = options.runtime_dir.create();
    created.map_err(|e| Error::system(format!("use {}", path.display()), e))?;
    let changed = send.clone();
    links::watch(move |news| changed(Event::Link(news)))?;
    let from_cluster = send.clone();
    let asked = move |request, answer| send(Event::Asked { request, answer });
    let abuse = control::listen(&options.runtime_dir, asked)?;
    let since = SystemTime::now();
    let records = options.records.as_ref().map(|it| State::new(it.target.to_string()));
    let board = Board::new(since, records.clone());
    let web = start_web(&options, &board, &abuse)?;
    let source_of_records = http::Source { board: board.clone(), abuse: abuse.clone() };
    let recording = options.records.as_ref().zip(records.as_ref());
    let recording = recording.map(|(it, state)| Recording::start(it, state, source_of_records));
    let recording = recording.transpose()?;
    let mut heartbeat = Heartbeat::new();
    // The agent's first request waits until there are ports to apply it to.
    let early = if has_inherited { Some(Ports::adopt(&mut heartbeat)?) } else { None };
    let readings = web.as_ref().map(Server::readings);
    let cluster = match &options.origin {
        Origin::File(_) => None,
        Origin::Kubernetes(origin) => {
            let send = move |event| from_cluster(Event::Cluster(event));
            Some(kubernetes::start(origin, send, board.clone(), readings)?)
        }
    };
    let mut first = Vec::new();
    let ports = match early {
        Some(ports) => ports,
        None => {
            let Some(heard) = inherit_later(&events, &board, &mut heartbeat)? else {
                return Ok(());
            };
            first = heard;
            require_understood()?;
            Ports::adopt(&mut heartbeat)?
        }
    };
    let mut daemon = Daemon {
        options,
        ports,
        source,
        since,
        last_refusal: None,
        abuse,
        heartbeat,
        board,
        web,
        _recording: recording,
        records,
        is_waiting,
        cluster,
        troubles: Vec::new(),
    };
    daemon.begin()?;
    first.into_iter().for_each(|event| daemon.handle_cluster_event(event));
    daemon.serve(&events)
}

fn require_understood() -> Result<()> {
    SharedPolicy::require_understood()?;
    Port::require_understood().map_err(Error::from)
}

/// Takes over the ports of another version of vcc, with their connections. Without a policy yet,
/// ports that are under one stay as they are, and this returns false: without rules, their connections
/// would be left alone, and those that do not depend on translation would be forgotten for good.
fn inherit(source: &Source, is_waiting: bool) -> Result<bool> {
    let inherited = Predecessor::succeed(|shared, ports| {
        if let Some(port) = ports.iter().find(|port| is_waiting && port.by_policy) {
            return Err(vcc_port::Error::UnderPolicy { device: port.device.clone() });
        }
        shared.apply(&source.policy, &guests::inherited(ports, &source.policy)).map(drop)
    });
    let inherited = match inherited {
        Err(vcc_port::Error::UnderPolicy { .. }) if is_waiting => return Ok(false),
        inherited => inherited?,
    };
    for Inherited { device, connections, left_alone, lost, .. } in inherited {
        let many = counted(connections, "connection");
        journal::notice!(
            port = &device,
            "{device}: taken over from another version of vcc, with {many}"
        );
        if left_alone > 0 {
            let many = counted(left_alone, "connection");
            journal::notice!(
                port = &device,
                "{device}: the policy leaves {many} alone from now on"
            );
        }
        if lost > 0 {
            let many = counted(lost, "connection");
            journal::warning!(port = &device, "{device}: {many} could not be taken over");
        }
    }
    Ok(true)
}

/// Takes them over when the cluster's policies arrive; remembered policies are there at once. Returns the
/// pending event to handle next, or None if the daemon is asked to end before.
fn inherit_later(
    events: &Receiver<Event>,
    board: &Board,
    heartbeat: &mut Heartbeat,
) -> Result<Option<Vec<kubernetes::AgentEvent>>> {
    let problem = |what: &str| Problem { about: kubernetes::ABOUT.into(), what: what.into() };
    let waiting = Error::PolicyToCome.to_string();
    board.problems(vec![problem(&waiting)], 0);
    let mut is_reported = false;
    let mut lasting = Vec::new();
    loop {
        heartbeat.beat();
        let event = events.recv_timeout(LOOK);
        match event {
            _ if signals::is_ending() => return Ok(None),
            Ok(Event::Signal(signals::Asked::End)) | Err(RecvTimeoutError::Disconnected) => {
                return Ok(None);
            }
            Ok(Event::Cluster(kubernetes::AgentEvent::Edition { name, text, answer })) => {
                let source = match Source::parse(text.clone(), &name) {
                    Ok(source) => source,
                    Err(error) => {
                        journal::error!(
                            "{name}: remembered policy is invalid, waiting for the API server: {error}"
                        );
                        let _ = answer.send(Err(error.to_string()));
                        continue;
                    }
                };
                inherit(&source, false)?;
                return Ok(Some(vec![
                    kubernetes::AgentEvent::Troubles(lasting),
                    kubernetes::AgentEvent::Edition { name, text, answer },
                ]));
            }
            Ok(Event::Cluster(kubernetes::AgentEvent::Troubles(troubles))) => {
                let what = troubles.iter().map(String::as_str).chain([&*waiting]);
                board.problems(what.map(problem).collect(), 0);
                lasting = troubles;
            }
            Ok(Event::Asked { answer, .. }) => {
                // The client may have gone.
                let _ = answer.send(Answer::of_error(&Error::PolicyToCome));
            }
            Ok(Event::Link(LinkNews::Lost(what))) => return Err(Error::Lost { what }),
            // Devices are listed once their ports are taken over.
            Ok(Event::Link(_) | Event::Signal(signals::Asked::Reload)) => {}
            Err(RecvTimeoutError::Timeout) if !is_reported => {
                journal::warning!("{waiting}");
                is_reported = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

enum Event {
    Link(LinkNews),
    Signal(signals::Asked),
    Asked { request: Request, answer: Sender<Answer> },
    Cluster(kubernetes::AgentEvent),
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
    /// Ends when dropped.
    _recording: Option<Recording>,
    records: Option<State>,
    /// Where policies come from a cluster.
    cluster: Option<Agent>,
    /// The cluster has not sent a policy yet: existing ports keep the one that they are under.
    is_waiting: bool,
    /// Lasting problems with the cluster's API server.
    troubles: Vec<Problem>,
}

/// Starts the web server. If its address is in use, the daemon does not start.
fn start_web(options: &Options, board: &Board, abuse: &Abuse) -> Result<Option<Server>> {
    let Some(web) = options.web.clone() else { return Ok(None) };
    let source = http::Source { board: board.clone(), abuse: abuse.clone() };
    Ok(Some(vcc_web::serve_with(web, Arc::new(source))?))
}

impl Daemon {
    fn begin(&mut self) -> Result<()> {
        if self.is_waiting {
            self.ports.keep_policy()?;
        } else {
            self.ports.apply(&self.source.policy, true)?;
        }
        self.list_devices(true);
        let event = self.summary();
        journal::notice!("{event}");
        if let Some(web) = &self.web {
            journal::info!("web page at http://{}/", web.address());
        }
        self.board.policy(&self.source.policy, &event);
        self.publish_problems();
        self.heartbeat.ready(&event);
        Ok(())
    }

    fn summary(&self) -> String {
        let ports = counted(self.ports.held().count(), "port");
        let rules = self.source.policy.count();
        format!("{ports} under {}: {rules}, epoch {}", self.source.file_name, self.ports.epoch())
    }

    /// Returns when the daemon is asked to end.
    fn serve(&mut self, events: &Receiver<Event>) -> Result<()> {
        let mut looked = Instant::now();
        let lost = loop {
            let event = events.recv_timeout(LOOK.saturating_sub(looked.elapsed()));
            match event {
                _ if signals::is_ending() => break None,
                Ok(Event::Link(LinkNews::Is(link))) => {
                    self.ports.device_changed(&link, &self.source.policy);
                    self.notify_agent();
                }
                Ok(Event::Link(LinkNews::Gone { index })) => {
                    self.ports.device_gone(index);
                    self.notify_agent();
                }
                Ok(Event::Link(LinkNews::Overrun)) => {
                    journal::notice!(
                        "events of network devices were lost: listing the devices again"
                    );
                    self.list_devices(false);
                }
                Ok(Event::Link(LinkNews::Lost(why))) => break Some(why),
                Ok(Event::Signal(signals::Asked::Reload)) => self.reload(),
                Ok(Event::Signal(signals::Asked::End)) => break None,
                Ok(Event::Asked { request, answer }) => {
                    // The client may have gone.
                    let _ = answer.send(self.answer(request));
                }
                Ok(Event::Cluster(event)) => self.handle_cluster_event(event),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if looked.elapsed() >= LOOK {
                let began = Instant::now();
                self.ports.check_regularly(&self.source.policy);
                self.publish_problems();
                looked = Instant::now();
                journal::if_slow("checking the ports", began);
            }
            self.heartbeat.beat();
        };
        self.heartbeat.ending();
        journal::notice!(
            "ending: everything stays attached, and connections are not affected \
             (`vcc detach --all` removes vcc)"
        );
        lost.map_or(Ok(()), |what| Err(Error::Lost { what }))
    }

    fn list_devices(&mut self, anew: bool) {
        match links::list() {
            Ok(links) => {
                self.ports.set_devices(&links, &self.source.policy, anew, &mut self.heartbeat)
            }
            Err(error) => journal::error!(
                "{error}: until the next reload (`vcc policy apply`), only devices that change are noticed"
            ),
        }
    }

    /// The device may belong to a pod that had none yet.
    fn notify_agent(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.devices_changed();
        }
    }

    fn handle_cluster_event(&mut self, event: kubernetes::AgentEvent) {
        match event {
            kubernetes::AgentEvent::Edition { name, text, answer } => {
                let result = Source::parse(text, &name).and_then(|source| self.put(source));
                if let Err(error) = &result {
                    self.refuse(error);
                }
                // The agent may have ended.
                let _ = answer.send(result.map(drop).map_err(|error| error.to_string()));
            }
            kubernetes::AgentEvent::Troubles(troubles) => {
                let problem = |what| Problem { about: kubernetes::ABOUT.to_owned(), what };
                self.troubles = troubles.into_iter().map(problem).collect();
                self.publish_problems();
            }
        }
    }

    fn reload(&mut self) {
        self.heartbeat.reloading();
        let result = self.options.origin.read().and_then(|source| self.put(source));
        if let Err(error) = result {
            self.refuse(&error);
        }
        let event = self.summary();
        self.heartbeat.ready(&event);
    }

    /// Puts a policy in force. An error changes nothing.
    fn put(&mut self, source: Source) -> Result<Applied> {
        // A device that was detached a moment ago becomes a port again.
        self.ports.catch_up(&self.source.policy);
        let began = Instant::now();
        // Pods come and go under the same edition of a cluster's policies.
        let is_reload =
            self.cluster.is_none() || self.is_waiting || source.file_name != self.source.file_name;
        // They change nothing for the connections of others.
        let is_for_others = self.cluster.is_some()
            && !self.is_waiting
            && !(is_reload && self.ports.have_drained_by_hand())
            && source.policy.has_rules_of(&self.source.policy)
            && self.ports.keep_their_terms(&self.source.policy, &source.policy);
        let flows = if is_for_others {
            journal::debug!("the policy changes nothing for existing ports: none is judged again");
            0
        } else {
            self.ports.apply(&source.policy, is_reload)?
        };
        let took_us = began.elapsed().as_micros() as u64;
        let mut warnings: Vec<String> = source.warnings.iter().map(ToString::to_string).collect();
        self.source = source;
        self.is_waiting = false;
        self.last_refusal = None;
        // A port that was detached by hand stays detached until a reload.
        self.list_devices(is_reload);
        let of_host = problems::host_devices(&self.ports);
        warnings.extend(of_host.map(|warning| format!("warning: {}", warning.what)));
        self.board.policy(&self.source.policy, &self.summary());
        self.publish_problems();
        journal::notice!(
            "{}; {} judged again, {} us",
            self.summary(),
            counted(flows as usize, "connection"),
            took_us
        );
        Ok(Applied {
            file_name: self.source.file_name.clone(),
            epoch: self.ports.epoch(),
            rules: self.source.policy.rules().len(),
            has_default: self.source.policy.has_default(),
            ports: self.ports.held().count(),
            flows,
            took_us,
            warnings,
            problems: problems::find(&self.ports).into_iter().map(|problem| problem.what).collect(),
        })
    }

    fn refuse(&mut self, error: &Error) {
        if matches!(error, Error::OfCluster) {
            // Only an answer to the request: no policy is faulty.
            journal::notice!("the previous policy stays in force: {error}");
            return;
        }
        journal::error!("the previous policy stays in force: {error}");
        if let Error::BadPolicy { problems, .. } = error {
            for problem in problems.problems.iter().filter(|p| p.severity == Severity::Error) {
                let vcc_policy::Problem { file_name, line, column, message, .. } = problem;
                journal::error!("{file_name}:{line}:{column}: {message}");
            }
        }
        self.board.refused(&error.to_string());
        self.last_refusal = Some(error.to_string());
        self.publish_problems();
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Apply { policy } => {
                let source = match (policy, &self.options.origin) {
                    (Some(policy), Origin::File(_)) => {
                        Source::parse(policy.text, &policy.file_name)
                    }
                    (Some(_), Origin::Kubernetes(_)) => Err(Error::OfCluster),
                    (None, origin) => origin.read(),
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
            Request::LogLevel { level } => Answer::log_level(level),
        }
    }

    /// Refused policies are reported separately: see [`Self::refuse`].
    fn publish_problems(&self) {
        let problems = self.troubles.iter().cloned().chain(problems::find(&self.ports));
        self.board.problems(problems.collect(), self.ports.attach_failures());
        self.board.warnings(problems::warnings(&self.ports));
        let flows = self.ports.host().connections().map_or(0, |(flows, _)| flows);
        self.board.usage(self.ports.held().count(), flows);
    }

    fn status(&self) -> Status {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let refused = self.last_refusal.iter();
        let refused = refused.map(|why| format!("the last policy was refused: {why}"));
        let problems = self.troubles.iter().cloned().chain(problems::find(&self.ports));
        let problems = problems.map(|problem| problem.what);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since_unix_s: since.as_secs(),
            config: self.options.origin.to_string(),
            policy: self.source.file_name.clone(),
            epoch: self.ports.epoch(),
            rules: self.source.policy.rules().len(),
            has_default: self.source.policy.has_default(),
            ports: self.ports.held().map(|held| self.port_status(held)).collect(),
            problems: problems.chain(refused).collect(),
            warnings: problems::host_devices(&self.ports).map(|it| it.what).into_iter().collect(),
            rejected_requests: self.abuse.count(),
            tables_bytes: self.ports.host().tables_bytes().ok(),
            listen: self.web.as_ref().map(Server::address),
            records: self.records.as_ref().map(|records| {
                let vcc_web::snapshot::Records { target, written, lost, failure } = records.view();
                RecordsStatus { target, written, lost, failure }
            }),
        }
    }

    fn port_status(&self, held: &KeptPort) -> PortStatus {
        PortStatus {
            device: held.port.device().to_owned(),
            index: held.index,
            tenant: held.tenant.clone(),
            guest: held.guest.clone(),
            draining: held.draining,
            // A port that cannot be read is among the problems.
            unknown_dropped_in_s: held
                .port
                .unknown_dropped_in_s(Some(self.ports.shared()))
                .unwrap_or_default(),
            neighbours: held.harmful_neighbours().to_vec(),
        }
    }
}
