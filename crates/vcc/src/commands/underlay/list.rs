use std::process::ExitCode;

use serde::Serialize;
use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_engine::Underlay;
use vcc_port::Underlays;

/// List the underlays that this host knows
#[derive(clap::Args)]
pub struct Arguments {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    loaded: bool,
    about: String,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let row =
        |name: &str, loaded, about: &str| Row { name: name.into(), loaded, about: about.into() };
    let mut rows: Vec<Row> =
        Underlay::built_in().map(|it| row(it.name(), false, it.about())).collect();
    let pinned = Underlays::pinned()?;
    rows.extend(pinned.iter().map(|(_, object)| row(object.name(), true, object.about())));
    if arguments.json {
        output::say_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = ["UNDERLAY", "", "ABOUT"].map(|name| (name, Align::Left));
    let mut table = Table::new(columns);
    for Row { name, loaded, about } in rows {
        let origin = if loaded { "loaded" } else { "built in" };
        table.row([name, origin.into(), about]);
    }
    output::say(&table.render());
    Ok(ExitCode::SUCCESS)
}
