use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use vcc_daemon::{Error, LogLevel, OfCluster, Options, Origin, RecordsOptions, RuntimeDir, Target};

use super::{log_level, policy};

/// Run the daemon: keep this host's ports under a policy
///
/// Attaches to every device that the policy makes a port, now and as devices appear, and adopts the
/// ports of an earlier daemon. SIGHUP reads the policy again. However the daemon ends, everything
/// stays attached and connections continue: `vcc detach --all` removes vcc.
#[derive(clap::Args)]
pub struct Arguments {
    /// File of the policy
    #[arg(long, value_name = "FILE", default_value = "/etc/vcc/policy.toml")]
    config: PathBuf,

    /// Use the policies of the Kubernetes cluster of this node instead of a file
    #[arg(long, conflicts_with = "config", requires = "node")]
    kubernetes: bool,

    /// With --kubernetes: the name of this node
    #[arg(long, value_name = "NAME", env = "NODE_NAME", hide_env_values = true)]
    node: Option<String>,

    /// With --kubernetes: how to reach the API server; by default as the service account of this pod
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    kubeconfig: Option<PathBuf>,

    /// With --kubernetes: where libcni keeps the results of CNI plugins
    #[arg(long, value_name = "DIRECTORY", requires = "kubernetes", default_value = vcc_daemon::CNI_CACHE)]
    cni_cache: PathBuf,

    /// Address on which to serve metrics, health and a web page of ports and flows, or `off`;
    /// anyone who can reach it sees all connections
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = Listen(Some(vcc_web::DEFAULT_LISTEN)))]
    listen: Listen,

    /// The log level; `vcc log-level` changes it at run time
    #[arg(long, value_name = "LEVEL", default_value_t, value_parser = log_level::parser())]
    log_level: LogLevel,

    /// A host name under which the page may be requested, besides addresses and `localhost`; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    host_name: Vec<String>,

    /// Write a line of JSON to FILE for each connection that has ended; - is stdout, and so the journal
    #[arg(long, value_name = "FILE", help_heading = "Records")]
    records: Option<PathBuf>,

    /// Rename the file to FILE.1 once it has MIB
    #[arg(long, value_name = "MIB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1 << 20), requires = "records", help_heading = "Records")]
    records_mib: u64,

    /// Keep N renamed files
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(..=1000), requires = "records", help_heading = "Records")]
    records_kept: u32,

    /// Record a share of the connections, chosen at random
    #[arg(long, value_name = "FRACTION", default_value_t = 1.0, value_parser = share, requires = "records", help_heading = "Records")]
    records_share: f64,
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "must be a number above 0 and at most 1".to_owned())
}

/// None: nowhere.
#[derive(Clone, Copy)]
struct Listen(Option<SocketAddr>);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(None)),
            _ => text.parse().map(|address| Self(Some(address))).map_err(|_| {
                "expected an address and a port, such as 127.0.0.1:9644 or [::1]:9644, or `off`"
                    .to_owned()
            }),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("off"),
        }
    }
}

fn origin(arguments: &Arguments) -> anyhow::Result<Origin> {
    let Some(node) = arguments.node.clone().filter(|_| arguments.kubernetes) else {
        return Ok(Origin::File(std::path::absolute(&arguments.config)?));
    };
    let agent = vcc_daemon::AgentOptions {
        node,
        kubeconfig: arguments.kubeconfig.clone(),
        namespace: namespace(std::env::var("POD_NAMESPACE").ok(), Path::new(ACCOUNT_NAMESPACE)),
        state_dir: std::env::var_os("STATE_DIRECTORY")
            .map_or_else(|| PathBuf::from("/var/lib/vcc"), PathBuf::from),
    };
    Ok(Origin::Kubernetes(OfCluster { agent, cni_cache: arguments.cni_cache.clone() }))
}

/// Where a pod with a service account finds the name of its namespace.
const ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The agents' own namespace: where their lease is, and what they may do with it is granted.
fn namespace(given: Option<String>, of_account: &Path) -> String {
    let is_name = |name: &String| !name.is_empty();
    let read = || std::fs::read_to_string(of_account).ok().map(|name| name.trim().to_owned());
    given.filter(is_name).or_else(read).filter(is_name).unwrap_or_else(|| "vcc".to_owned())
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let web = arguments.listen.0.map(|listen| vcc_web::Options {
        listen,
        host_names: arguments.host_name.clone(),
        limits: vcc_web::Limits::default(),
    });
    let records = arguments.records.as_ref().map(|path| RecordsOptions {
        target: match path.as_os_str() == "-" {
            true => Target::Stdout,
            false => Target::File(path.clone()),
        },
        file_max_bytes: arguments.records_mib << 20,
        kept_files: arguments.records_kept,
        share: arguments.records_share,
    });
    let (origin, runtime_dir) = (origin(arguments)?, RuntimeDir::of_environment());
    let log_level = arguments.log_level;
    let options = Options { origin, log_level, runtime_dir, web, records };
    vcc_daemon::run(options).inspect_err(|error| {
        if let Error::BadPolicy { problems, .. } = error {
            policy::complain(&problems.problems);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_namespace_is_that_of_the_pod_or_its_account() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("namespace");
        let of = |given: Option<&str>| namespace(given.map(str::to_owned), &file);
        assert_eq!(of(None), "vcc", "outside of a pod");
        assert_eq!(of(Some("net-system")), "net-system");
        std::fs::write(&file, "kube-net\n").expect("a file");
        assert_eq!(of(None), "kube-net");
        assert_eq!(of(Some("")), "kube-net");
        assert_eq!(of(Some("net-system")), "net-system");
        std::fs::write(&file, "").expect("a file");
        assert_eq!(of(None), "vcc");
    }
}
