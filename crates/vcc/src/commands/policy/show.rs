use std::path::PathBuf;
use std::process::ExitCode;

use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_engine::Mode;
use vcc_policy::units::size;
use vcc_policy::{KEYS, Key, Kind, Policy, Rule, dashed};

use super::read_or_ask;

/// Print a policy with all defaults
#[derive(clap::Args)]
pub struct Arguments {
    /// The policy [default: the one that the daemon has in force]
    file: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let policy = read_or_ask(arguments.file.as_deref())?;
    output::say(&report(&policy));
    Ok(ExitCode::SUCCESS)
}

pub fn report(policy: &Policy) -> String {
    let tables = [ports(policy), pools(policy), Some(rules(policy))];
    let texts: Vec<String> = tables.into_iter().flatten().map(|table| table.render()).collect();
    texts.join("\n")
}

const NOTHING: &str = "-";

fn ports(policy: &Policy) -> Option<Table> {
    use Align::{Left, Right};
    let names = [
        ("PORTS", Left),
        ("TENANT", Left),
        ("CLASS", Left),
        ("GUEST", Left),
        ("MAX-FLOWS", Right),
        ("BUFFER", Right),
        ("BUFFER-POLICY", Left),
        ("INSIDE", Left),
        ("ORDER", Left),
    ];
    let mut table = Table::new(names);
    for port in policy.ports() {
        let buffer = port.buffer();
        let shown = |value: Option<String>| value.unwrap_or(NOTHING.to_owned());
        table.row([
            port.pattern().to_owned(),
            shown(port.tenant().map(str::to_owned)),
            shown(port.affiliation().class.map(str::to_owned)),
            shown(port.guest().map(str::to_owned)),
            port.max_flows().to_string(),
            shown(buffer.map(|buffer| size::display(buffer.size_bytes))),
            shown(buffer.map(|buffer| buffer.policy.to_string())),
            shown((!port.inside().is_empty()).then(|| port.inside().to_string())),
            shown(buffer.is_none().then(|| port.order().name().to_owned())),
        ]);
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

/// Keys with a column; the others are under OTHER where they are not the default.
fn columns() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.has_column())
}

fn rules(policy: &Policy) -> Table {
    let names: Vec<(String, Align)> = columns()
        .map(|key| {
            let align = if key.kind.is_number() { Align::Right } else { Align::Left };
            (dashed(key.name).to_uppercase(), align)
        })
        .collect();
    let columns = names.iter().map(|(name, align)| (name.as_str(), *align));
    let before = [("#", Align::Right), ("RULE", Align::Left)];
    let after = [("OTHER", Align::Left), ("MATCHES", Align::Left)];
    let mut table = Table::new(before.into_iter().chain(columns).chain(after));
    for (place, rule) in policy.rules().iter().enumerate() {
        let mut row = vec![(place + 1).to_string(), rule.name().to_owned()];
        row.extend(treatment(policy, rule));
        row.push(rule.to_string());
        table.row(row);
    }
    table
}

/// The columns of keys, and OTHER.
fn treatment(policy: &Policy, rule: &Rule) -> Vec<String> {
    let treatment = rule.treatment();
    let is_ignored = treatment.mode() == Mode::Ignore;
    let cell = |key: &'static Key| match (key.get(treatment), key.kind) {
        _ if is_ignored && key.name != "mode" => NOTHING.to_owned(),
        (None, _) => treatment.pool.map_or(NOTHING.into(), |it| policy.pools()[it].name.clone()),
        (Some(number), kind) if kind.is_none(number) => NOTHING.to_owned(),
        (Some(flag), Kind::Flag) => if flag != 0 { "yes" } else { "no" }.to_owned(),
        (Some(number), kind) => kind.show(number),
    };
    let others: Vec<String> = treatment
        .changes()
        .filter(|(key, _)| !key.has_column())
        .map(|(key, number)| format!("{}={}", key.name, key.kind.toml(number)))
        .collect();
    let others = if others.is_empty() || is_ignored { NOTHING.into() } else { others.join(" ") };
    columns().map(cell).chain([others]).collect()
}
