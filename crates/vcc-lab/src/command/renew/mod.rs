mod choice;
mod item;
mod measurement;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::value_parser;
use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_results::report::{Outcome, Results, matches_pattern};

use crate::report;
use crate::run::NOT_REPRODUCED;
use choice::{next, remaining};
use item::{Item, Step};
use measurement::{Confirmed, End, Runner};

/// Measure again what is older than the code that it depends on
///
/// Run it in the root of a checkout of vcc. Each record in results/data names the sources that it
/// depends on. It is stale if one of them has changed since, except in comments, tests or wording. This
/// renews stale records and measures experiments and benchmarks without one, one after another, shortest
/// first, and records each at once. It can be interrupted at any time: only the measurement that was
/// running is lost, and the next call continues with it.
///
/// For a record in virtual time, it first repeats the first run of each case: if its frames and figures
/// are the same, newer code has changed nothing, and the record is confirmed instead of measured again.
///
/// Each is measured by the command that its record names, or without options if there is no record.
/// Let the machine idle meanwhile, except for experiments in virtual time.
///
/// Exit status: 0 if all that was measured is valid, also if some is left; 1 if something could not
/// be measured, or is not valid; 3 if an expectation fails.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only show what is current, stale or missing, and how long it takes
    #[arg(long)]
    list: bool,

    /// Begin nothing that is expected to take longer than what is left of N minutes; what takes an
    /// unknown time comes last, and may take longer
    #[arg(long, value_name = "N", conflicts_with = "list", value_parser = value_parser!(u32).range(1..=100_000))]
    minutes: Option<u32>,

    /// Only experiments of this name, and benchmarks as bench-NAME; a `*` at the end stands for
    /// anything; may be given several times
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Skip experiments and benchmarks of this name; takes the same patterns as --only
    #[arg(long, value_name = "PATTERN")]
    except: Vec<String>,

    /// Measure all runs of each, also where a repetition of the first ones could confirm the record
    #[arg(long)]
    all_runs: bool,

    /// Only experiments in virtual time, for which the machine need not idle
    #[arg(long = "virtual")]
    in_virtual_time: bool,

    /// Also write all figures of each to DIRECTORY, as `vcc-lab run --json` and --plot
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "list")]
    results: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    report::require_checkout()?;
    let (items, left_out) = selected(arguments, &BTreeSet::new())?;
    left_out.iter().for_each(|text| output::complain(text));
    if arguments.list {
        list(&items);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(directory) = arguments.results.as_deref().filter(|path| !path.is_dir()) {
        bail!("cannot write results: there is no directory {}", directory.display());
    }
    // An interruption may have left pages that are older than the records.
    report::write_records(&Results::default())?;
    renew(arguments)
}

/// `changed` has the names of records that a repetition has not confirmed.
fn selected(
    arguments: &Arguments,
    changed: &BTreeSet<String>,
) -> anyhow::Result<(Vec<Item>, Vec<String>)> {
    let may_confirm = |name: &str| !arguments.all_runs && !changed.contains(name);
    let (mut items, left_out) = item::all(Path::new(report::RECORDS), &may_confirm)?;
    let known = |pattern: &&String| items.iter().any(|it| matches_pattern(pattern, &it.name));
    if let Some(pattern) = arguments.only.iter().find(|pattern| !known(pattern)) {
        bail!(
            "there is no experiment and no benchmark '{pattern}': `vcc-lab renew --list` shows all"
        );
    }
    let any = |patterns: &[String], name: &str| patterns.iter().any(|it| matches_pattern(it, name));
    items.retain(|it| {
        (arguments.only.is_empty() || any(&arguments.only, &it.name))
            && !any(&arguments.except, &it.name)
            && (it.is_virtual || !arguments.in_virtual_time)
    });
    Ok((items, left_out))
}

fn list(items: &[Item]) {
    let columns = [("NAME", Align::Left), ("TIME", Align::Right), ("STATE", Align::Left)];
    let mut table = Table::new(columns);
    for it in items {
        table.row([it.name.clone(), it.time.to_string(), it.state()]);
    }
    output::say(&table.render());
    let due: Vec<&Item> = items.iter().filter(|it| it.is_due()).collect();
    output::say(&format!("\n{} current; to renew: {}\n", items.len() - due.len(), remaining(&due)));
}

fn renew(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
    let runner = Runner::new(arguments.results.as_deref())?;
    // Why each that was measured is not renewed, should it not be.
    let mut tried: BTreeMap<String, String> = BTreeMap::new();
    let mut changed: BTreeSet<String> = BTreeSet::new();
    loop {
        let (items, _) = selected(arguments, &changed)?;
        let left = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
        let untried = |it: &&Item| it.is_due() && !tried.contains_key(&it.name);
        let due: Vec<&Item> = items.iter().filter(untried).collect();
        let Some(item) = next(&due, left) else {
            return Ok(conclude(&items, &tried, &due));
        };
        let (name, state) = (&item.name, item.state());
        if item.step == Step::Confirm {
            output::say(&format!("repeating: {name}: {state}; to renew: {}\n", remaining(&due)));
            let repeated = runner.confirm(item).with_context(|| format!("cannot repeat {name}"))?;
            let why = match repeated {
                Confirmed::Interrupted => interrupted(name)?,
                Confirmed::Same => {
                    tried.insert(name.clone(), "equal first runs".into());
                    continue;
                }
                Confirmed::Differs(cases) => {
                    format!("the first runs of {} differ", cases.join(", "))
                }
                Confirmed::Failed(status) => format!("the repetition ended with {status}"),
            };
            output::say(&format!("{name}: not confirmed, so all runs are measured: {why}\n"));
            changed.insert(name.clone());
            continue;
        }
        output::say(&format!("renewing: {name}: {state}; to renew: {}\n", remaining(&due)));
        match runner.measure(item).with_context(|| format!("cannot renew {name}"))? {
            End::Interrupted => interrupted(name)?,
            End::Exited(status) => tried.insert(name.clone(), status),
        };
    }
}

fn interrupted<T>(name: &str) -> anyhow::Result<T> {
    bail!("interrupted: `vcc-lab renew` continues with {name}")
}

/// Reports what has failed, what speaks against the expectations and what is left.
fn conclude(items: &[Item], tried: &BTreeMap<String, String>, left: &[&Item]) -> ExitCode {
    let mut code = 0;
    for it in items {
        let Item { name, arguments, .. } = it;
        let command = arguments.join(" ");
        match (tried.get(name), it.outcome) {
            (Some(status), _) if it.is_due() => {
                output::complain(&format!(
                    "{name}: not renewed: `vcc-lab {command}` ended with {status}, for the reason above"
                ));
                code = 1;
            }
            _ if it.is_due() => {}
            (_, Some(Outcome::NotValid)) => {
                output::complain(&format!(
                    "{name}: NOT valid: repeat `vcc-lab {command} --record`"
                ));
                code = 1;
            }
            (_, Some(Outcome::NotReproduced)) => {
                output::complain(&format!("{name}: NOT reproduced"));
                code = if code == 0 { NOT_REPRODUCED } else { code };
            }
            (_, Some(Outcome::Undecided)) => output::say(&format!(
                "{name}: undecided: repeat with more runs, --runs N: `vcc-lab {command} --record`\n"
            )),
            _ => {}
        }
    }
    let renewed =
        tried.keys().filter(|name| items.iter().any(|it| it.name == **name && !it.is_due()));
    output::say(&format!("renewed: {}; left to renew: {}\n", renewed.count(), remaining(left)));
    ExitCode::from(code)
}
