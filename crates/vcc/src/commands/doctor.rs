use std::process::ExitCode;

use vcc_port::doctor::{self, Check, Need};

use crate::output;

/// Check what this kernel and process provide, and what is missing
#[derive(clap::Args)]
pub struct Arguments {
    /// Print the checks as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let checks = doctor::checks();
    if arguments.json {
        output::say_json(&checks)?;
    } else {
        output::say(&report(&checks));
    }
    let all_there = checks.iter().all(|check| check.ok);
    Ok(if all_there { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(checks: &[Check]) -> String {
    let mut text = String::new();
    for (need, title) in [(Need::Attach, "To attach to ports"), (Need::Lab, "For the lab")] {
        text += &format!("{title}:\n");
        for check in checks.iter().filter(|check| check.need == need) {
            let verdict = if check.ok { "ok" } else { "MISSING" };
            text += &format!("  {:<15} {verdict:<7}  {}\n", check.name, check.found);
            if let Some(remedy) = check.remedy {
                text += &format!("  {:<15} {:<7}  -> {remedy}\n", "", "");
            }
        }
    }
    let missing = checks.iter().filter(|check| !check.ok).count();
    text += &match missing {
        0 => "Nothing is missing.\n".to_owned(),
        n => format!("{n} missing.\n"),
    };
    text
}
