use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use vcc_daemon::{Error, Options, RuntimeDir};

use super::policy;

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

    /// Address on which to serve metrics, health and a web page of ports and flows, or `off`;
    /// whoever can reach it sees all connections
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = Listen(Some(vcc_web::DEFAULT_LISTEN)))]
    listen: Listen,

    /// A host name under which the page may be requested, besides addresses and `localhost`; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    host_name: Vec<String>,
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

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let web = arguments.listen.0.map(|listen| vcc_web::Options {
        listen,
        host_names: arguments.host_name.clone(),
        limits: vcc_web::Limits::default(),
    });
    let options = Options {
        config: std::path::absolute(&arguments.config)?,
        runtime_dir: RuntimeDir::of_environment(),
        web,
    };
    vcc_daemon::run(options).inspect_err(|error| {
        if let Error::BadPolicy { problems, .. } = error {
            policy::complain(&problems.problems);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
