use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use vcc_daemon::{Error, Options, RuntimeDir};

use super::policy;

/// Keep this host's ports under a policy: the daemon
///
/// Attaches to every device that the policy calls a port, now and as they appear; adopts what an
/// earlier daemon left. SIGHUP reads the policy again. When it ends, however it ends, everything stays
/// attached, and connections go on: `vcc detach --all` takes vcc off.
#[derive(clap::Args)]
pub struct Arguments {
    /// The policy
    #[arg(long, value_name = "FILE", default_value = "/etc/vcc/policy.toml")]
    config: PathBuf,

    /// Where metrics, health and a page of ports and flows are served: an address of this host, for who
    /// may see all of its connections; or `off`
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = Listen(Some(vcc_web::DEFAULT_LISTEN)))]
    listen: Listen,

    /// A name by which others ask for that page, beside addresses and `localhost`; may be repeated
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
                "an address and a port, like 127.0.0.1:9644 or [::1]:9644, or `off`".to_owned()
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
        config: arguments.config.clone(),
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
