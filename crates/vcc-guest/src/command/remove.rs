use std::process::ExitCode;

use vcc_command::output;
use vcc_guest::{Flood, Removed, Restored, Unregistered};

use crate::{by, require_root};

/// Make the default before `vcc-guest flood` the default again, and unregister the congestion control
///
/// Connections that use it keep it until they end.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    require_root("unregister a congestion control")?;
    run_on(&Flood::here()?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn run_on(flood: &Flood) -> anyhow::Result<()> {
    output::say(&report(&flood.remove()?));
    Ok(())
}

fn report(removed: &Removed) -> String {
    let mut text = match &removed.default {
        Restored::Untouched { current } => {
            format!("the default of new connections is {current}, as before\n")
        }
        Restored::To { current, is_fallback: false } => {
            format!("the default of new connections is {current} again\n")
        }
        Restored::To { current, is_fallback: true } => format!(
            "the default of new connections is {current}, because the one before flood is unknown or gone\n"
        ),
    };
    text += &match &removed.unregistered {
        Unregistered::WasNot => "flood is not registered\n".to_owned(),
        Unregistered::Done(_) => {
            "flood is not registered any more; connections keep it until they end\n".to_owned()
        }
        Unregistered::InUse(users) => format!(
            "the module tcp_flood has {users} user(s), and stays loaded: when their connections have ended, run \
             this again\n"
        ),
        Unregistered::NotOurs(provider) => {
            format!("flood stays registered, because it is so {}\n", by(provider))
        }
    };
    text
}

#[cfg(test)]
mod tests {
    use vcc_guest::Provider;

    use super::*;

    #[test]
    fn what_stays_is_reported() {
        let again = Restored::To { current: "bbr".into(), is_fallback: false };
        let with = |unregistered| report(&Removed { default: again.clone(), unregistered });
        for (unregistered, expected) in [
            (Unregistered::WasNot, "flood is not registered\n"),
            (Unregistered::Done(Provider::Module), "until they end\n"),
            (Unregistered::InUse(3), "has 3 user(s), and stays loaded"),
            (Unregistered::NotOurs(Provider::BuiltIn), "stays registered, because it is so by the"),
        ] {
            let text = with(unregistered);
            assert!(text.starts_with("the default of new connections is bbr again\n"), "{text}");
            assert!(text.contains(expected), "{text}");
        }
        let default = Restored::To { current: "reno".into(), is_fallback: true };
        let text = report(&Removed { default, unregistered: Unregistered::WasNot });
        assert!(text.contains("is reno, because the one before flood is unknown"), "{text}");
    }
}
