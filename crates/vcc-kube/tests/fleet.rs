//! Agents by the hundred against Kubernetes' own API server: without hosts, since the server is what
//! they share.
//!
//! `VCC_FLEET=1000 cargo test --release -p vcc-kube --test fleet -- --ignored --nocapture` prints what
//! so many cost the server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use vcc_kube::{Agent, Host, Options, Pod, RuleActivity, Usage, schema};
use vcc_testing::kubernetes::Cluster;

/// A node without a datapath: it takes any policy, and counts how many.
struct Paper {
    applied: Arc<AtomicUsize>,
}

impl Host for Paper {
    fn devices(&mut self, pods: &[&Pod]) -> BTreeMap<String, String> {
        let device = |(at, pod): (usize, &&Pod)| (pod.uid.clone(), format!("veth{at}"));
        pods.iter().enumerate().map(device).collect()
    }

    fn apply(&mut self, _edition: &str, _text: &str) -> Result<(), String> {
        self.applied.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn usage(&mut self) -> Usage {
        Usage { ports: 1, flows: 2, problems: Vec::new() }
    }

    fn activity(&mut self) -> Vec<RuleActivity> {
        let rule = |name: &str| RuleActivity {
            name: name.to_owned(),
            flows: 3,
            rtt_us: 100,
            ..Default::default()
        };
        vec![rule("web/r")]
    }

    fn refused_choices(&mut self, _refused: &[String]) {}

    fn troubles(&mut self, _troubles: Vec<String>) {}
}

struct Fleet {
    cluster: Cluster,
    agents: Vec<Agent>,
    applied: Arc<AtomicUsize>,
    _state: tempfile::TempDir,
}

fn name(number: usize) -> String {
    format!("node-{number}")
}

impl Fleet {
    fn start(size: usize) -> Option<Self> {
        let cluster = Cluster::start()?;
        cluster.apply(&schema::yaml());
        cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
        cluster.kubectl(&["create", "namespace", "vcc"]);
        let state = tempfile::tempdir().expect("a directory");
        let applied = Arc::default();
        let agents = (0..size).map(|number| {
            let options = Options {
                node: name(number),
                kubeconfig: Some(cluster.kubeconfig()),
                namespace: "vcc".to_owned(),
                state_dir: state.path().join(name(number)),
            };
            vcc_kube::start(options, Paper { applied: Arc::clone(&applied) }).expect("an agent")
        });
        let agents = agents.collect();
        Some(Self { cluster, agents, applied, _state: state })
    }

    fn apply(&self, spec: Value) {
        let (api_version, kind) = ("vcc.internal/v1alpha1", "VccPolicy");
        let metadata = json!({ "name": "web" });
        let object =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec });
        self.cluster.apply(&object.to_string());
    }

    /// The generation that each node reports to have in force, from a watch.
    fn watched(&self) -> Watched {
        let watched = Watched::default();
        let (seen, kubeconfig) = (Arc::clone(&watched.0), self.cluster.kubeconfig());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(watch(kubeconfig, seen));
        });
        watched
    }

    fn status(&self) -> Value {
        let policy = self.cluster.object("/apis/vcc.internal/v1alpha1/vccpolicies/web");
        policy.expect("a policy")["status"].take()
    }
}

/// Asking for all nodes again and again would be most of what the server does.
#[derive(Default)]
struct Watched(Arc<Mutex<BTreeMap<String, i64>>>);

impl Watched {
    fn await_all(&self, size: usize, generation: i64) {
        comes_to("all nodes", || {
            let nodes = self.0.lock().expect("not poisoned");
            (nodes.len() == size && nodes.values().all(|it| *it == generation)).then_some(())
        });
    }
}

async fn watch(kubeconfig: PathBuf, seen: Arc<Mutex<BTreeMap<String, i64>>>) {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let context = KubeConfigOptions::default();
    let config =
        kube::Config::from_custom_kubeconfig(file, &context).await.expect("a configuration");
    let client = kube::Client::try_from(config).expect("a client");
    let kind = GroupVersionKind::gvk("vcc.internal", "v1alpha1", "VccNode");
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    let nodes = watcher(api, watcher::Config::default()).applied_objects();
    futures_util::pin_mut!(nodes);
    while let Some(node) = nodes.next().await {
        let Ok(node) = node else { return };
        let in_force = node.data["status"]["policies"][0]["inForce"].as_i64().unwrap_or(0);
        let name = node.metadata.name.expect("a name");
        seen.lock().expect("not poisoned").insert(name, in_force);
    }
}

#[track_caller]
fn comes_to<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    const PATIENCE: Duration = Duration::from_secs(300);
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "not after {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn spec(underlay: &str, rollout: Value) -> Value {
    json!({
        "ports": [{ "device": "veth*" }],
        "rules": [{ "name": "r", "underlay": underlay }],
        "rollout": rollout,
    })
}

#[test]
fn a_canary_s_nodes_and_the_others_are_beside_each_other() {
    const SIZE: usize = 30;
    let Some(fleet) = Fleet::start(SIZE) else { return };
    fleet.apply(spec("dctcp", json!({ "canary": "20%", "shadow": true })));
    let everywhere = format!("{SIZE}/{SIZE}");
    let status = comes_to("it is everywhere", || {
        let status = fleet.status();
        (status["everywhere"] == everywhere.as_str() && status["canary"]["rtt"] == "100us")
            .then_some(status)
    });
    let (canary, others) = (&status["canary"], &status["others"]);
    let count = |group: &Value| group["nodes"].as_u64().expect("a count");
    assert_eq!(count(canary) + count(others), SIZE as u64);
    assert!((1..15).contains(&count(canary)), "{canary}");
    assert_eq!((&canary["mode"], &others["mode"]), (&"as written".into(), &"shadow".into()));
    assert_eq!(canary["flows"].as_u64(), Some(count(canary) * 3));
    let table = fleet.cluster.kubectl(&["get", "vccpolicies"]);
    for part in
        ["CANARY-RETRANS", "OTHERS-RETRANS", "CANARY-RTT", "OTHERS-RTT", "100us", &everywhere]
    {
        assert!(table.contains(part), "{part}: {table}");
    }

    // All send everything again: nothing is applied twice.
    let applied = fleet.applied.load(Ordering::Relaxed);
    fleet.cluster.stop_api_server();
    fleet.cluster.start_api_server();
    fleet.apply(spec("cubic", json!({})));
    comes_to("it is everywhere", || {
        let status = fleet.status();
        (status["observedGeneration"] == 2 && status["everywhere"] == everywhere.as_str())
            .then_some(())
    });
    assert_eq!(fleet.applied.load(Ordering::Relaxed), applied + SIZE);
}

/// A figure of the API server's metrics: the sum over all of its labels that contain `part`.
fn metric(cluster: &Cluster, name: &str, part: &str) -> f64 {
    let metrics = cluster.kubectl(&["get", "--raw", "/metrics"]);
    let of = |line: &str| {
        let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
        (labels.starts_with('{') && labels.contains(part))
            .then(|| value.parse::<f64>().unwrap_or(0.0))
    };
    metrics.lines().filter_map(of).sum()
}

fn memory_kib() -> u64 {
    vcc_testing::process_status(std::process::id(), "VmRSS")
}

/// From a change of the policy to the last node's status, and what it costs the server.
#[test]
#[ignore = "minutes"]
fn so_many_agents_cost_the_server() {
    const CHANGES: usize = 100;
    let size = std::env::var("VCC_FLEET").map_or(1000, |size| size.parse().expect("a number"));
    let before_kib = memory_kib();
    let Some(fleet) = Fleet::start(size) else { return };
    fleet.apply(spec("dctcp", json!({})));
    let watched = fleet.watched();
    watched.await_all(size, 1);
    let requests = || metric(&fleet.cluster, "apiserver_request_total", "vcc");
    let sent = || {
        metric(&fleet.cluster, "apiserver_response_sizes_sum", "vcc")
            + metric(&fleet.cluster, "apiserver_watch_events_sizes_sum", "vcc")
    };
    let at_rest = (Instant::now(), requests(), sent());
    thread::sleep(Duration::from_secs(120));
    let seconds = at_rest.0.elapsed().as_secs_f64();
    let (per_s, bytes_per_s) = ((requests() - at_rest.1) / seconds, (sent() - at_rest.2) / seconds);

    let mut took_ms = Vec::new();
    for change in 0..CHANGES {
        let underlay = ["cubic", "dctcp"][change % 2];
        let begin = Instant::now();
        fleet.apply(spec(underlay, json!({})));
        watched.await_all(size, change as i64 + 2);
        took_ms.push(begin.elapsed().as_millis());
        thread::sleep(Duration::from_secs(2));
    }
    took_ms.sort_unstable();
    let watches = metric(&fleet.cluster, "apiserver_longrunning_requests", "WATCH");
    println!(
        "figure: {size} agents: from apply to the last node's status {} ms at the median, {} ms at p99, \
         {} ms at most of {CHANGES}; {watches} watches; at rest {per_s:.1} requests/s, {bytes_per_s:.0} bytes/s; \
         {} kB of memory for each agent",
        took_ms[CHANGES / 2],
        took_ms[CHANGES * 99 / 100 - 1],
        took_ms[CHANGES - 1],
        (memory_kib() - before_kib) / size as u64,
    );
    drop(fleet.agents);
}
