use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use vcc_engine::Mode;
use vcc_policy::units::{BytesPerMs, size};
use vcc_policy::{Policy, settings};

use super::read_or_ask;
use crate::output;
use crate::table::{Align, Table};

/// Print a policy as it is understood, with what the file leaves to defaults
#[derive(clap::Args)]
pub struct Arguments {
    /// The policy [default: what the daemon has in force]
    file: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = read_or_ask(arguments.file.as_deref())?;
    let tables = [ports(&policy), pools(&policy), Some(rules(&policy))];
    let texts: Vec<String> = tables.into_iter().flatten().map(|table| table.render()).collect();
    output::say(&texts.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn ports(policy: &Policy) -> Option<Table> {
    use Align::{Left, Right};
    let mut table = Table::new([("PORTS", Left), ("TENANT", Left), ("MAX-FLOWS", Right)]);
    for port in policy.ports() {
        let tenant = or_dash(port.tenant().map(str::to_owned));
        table.row([port.device().to_owned(), tenant, port.max_flows().to_string()]);
    }
    (!policy.ports().is_empty()).then_some(table)
}

fn pools(policy: &Policy) -> Option<Table> {
    let mut table = Table::new([("POOL", Align::Left), ("WINDOW", Align::Right)]);
    for pool in policy.pools() {
        table.row([pool.name.clone(), size::display(pool.window_bytes)]);
    }
    (!policy.pools().is_empty()).then_some(table)
}

/// What has a column of its own is not said again under OTHER.
const COLUMNS: [&str; 7] =
    ["guest_ecn", "police", "emit", "window_cap", "rate_cap", "window_max", "priority"];

fn rules(policy: &Policy) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("#", Right),
        ("RULE", Left),
        ("MODE", Left),
        ("UNDERLAY", Left),
        ("POOL", Left),
        ("CAP", Right),
        ("RATE-CAP", Right),
        ("WINDOW-MAX", Right),
        ("GUEST-ECN", Left),
        ("POLICE", Left),
        ("EMIT", Left),
        ("OTHER", Left),
        ("MATCHES", Left),
    ]);
    let yes_or_no = |flag| if flag { "yes" } else { "no" }.to_owned();
    for (place, rule) in policy.rules().iter().enumerate() {
        let treatment = rule.treatment();
        let share = treatment.pool.map(|share| (&policy.pools()[share.pool], share.weight));
        let own = |(key, _): &(&str, String)| !COLUMNS.contains(key);
        let others = settings(treatment).into_iter().filter(own);
        let others: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
        let underlay = match treatment.priority() {
            Some(priority) => format!("{}({priority})", treatment.underlay),
            None => treatment.underlay.to_string(),
        };
        let row = [
            (place + 1).to_string(),
            rule.name().to_owned(),
            treatment.mode.to_string(),
            underlay,
            or_dash(share.map(|(pool, weight)| format!("{} x{weight}", pool.name))),
            or_dash(treatment.cap_bytes.map(|bytes| size::display(bytes.get()))),
            or_dash(
                treatment
                    .cap_bytes_per_ms
                    .map(|rate: NonZeroU32| BytesPerMs::from(rate).to_string()),
            ),
            size::display(treatment.window_max_bytes),
            treatment.guest_ecn.to_string(),
            yes_or_no(treatment.police),
            yes_or_no(treatment.emit),
            or_dash((!others.is_empty()).then(|| others.join(" "))),
            rule.to_string(),
        ];
        table.row(match treatment.mode {
            Mode::Ignore => untreated(row),
            _ => row,
        });
    }
    table
}

/// Of connections that are left alone the rest says nothing.
fn untreated(row: [String; 13]) -> [String; 13] {
    const UNDERLAY: usize = 3;
    const MATCHES: usize = 12;
    let mut place = 0;
    row.map(|cell| {
        let is_said = !(UNDERLAY..MATCHES).contains(&place);
        place += 1;
        if is_said { cell } else { "-".to_owned() }
    })
}
