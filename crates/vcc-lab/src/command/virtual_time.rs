use std::path::PathBuf;
use std::process::ExitCode;

use vcc_bench::Origin;
use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_lab::bench::{Bench, LOADS, Load, Timing};
use vcc_results::report::bench::{self, Measurements, Spread};

/// Wall-clock seconds per virtual second
///
/// Bulk flows of DCTCP to one receiver, in guests with kernels of their own, over links of 10
/// Gbit/s and 25 us. WALL/VIRT is the median over the window of measurement, SPREAD its 10th and
/// 90th percentile; the other columns are wall-clock seconds before, in and after that window.
#[derive(clap::Args)]
pub struct Arguments {
    /// Runs of each load, which take turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Only this load; may be given several times
    #[arg(long = "load", value_name = "NAME", value_parser = named)]
    loads: Vec<Load>,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn named(name: &str) -> Result<Load, String> {
    let known = || LOADS.map(|load| load.name).join(", ");
    let load = LOADS.into_iter().find(|load| load.name == name);
    load.ok_or_else(|| format!("there are {}", known()))
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let loads = if arguments.loads.is_empty() { LOADS.to_vec() } else { arguments.loads.clone() };
    let bench = Bench::prepare()?;
    let mut timings = vec![Vec::new(); loads.len()];
    for _ in 0..arguments.runs {
        for (load, timings) in loads.iter().zip(&mut timings) {
            timings.push(bench.run(load)?);
        }
    }
    let measurements: Vec<bench::Load> =
        loads.iter().zip(&timings).map(|(load, timings)| measurement(load, timings)).collect();
    output::say(&table(&measurements));
    if let Some(path) = &arguments.json {
        origin.write(path, Measurements::Virtual(measurements))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measurement(load: &Load, timings: &[Timing]) -> bench::Load {
    let spread = |of: fn(&Timing) -> f64| Spread::from_samples(timings.iter().map(of).collect());
    bench::Load {
        name: load.name.into(),
        what: load.what.into(),
        // Equal in all runs, because they have one seed.
        virtual_s: timings[0].virtual_s,
        goodput_gbit_s: timings[0].goodput_bps / 1e9,
        wall_per_virtual: spread(|it| it.taken.measured_s / it.virtual_s),
        boot_s: spread(|it| it.taken.boot_s),
        begin_s: spread(|it| it.taken.begin_s),
        measured_s: spread(|it| it.taken.measured_s),
        end_s: spread(|it| it.taken.end_s),
        wall_s: spread(|it| {
            it.taken.boot_s + it.taken.begin_s + it.taken.measured_s + it.taken.end_s
        }),
    }
}

fn table(measurements: &[bench::Load]) -> String {
    let mut table = Table::new([
        ("LOAD", Align::Left),
        ("GBIT/S", Align::Right),
        ("WALL/VIRT", Align::Right),
        ("SPREAD", Align::Right),
        ("BOOT", Align::Right),
        ("BEGIN", Align::Right),
        ("MEASURED", Align::Right),
        ("END", Align::Right),
        ("ALL", Align::Right),
        ("WHAT", Align::Left),
    ]);
    for it in measurements {
        let seconds = |spread: &Spread| format!("{:.2}", spread.median);
        table.row([
            it.name.clone(),
            format!("{:.2}", it.goodput_gbit_s),
            seconds(&it.wall_per_virtual),
            format!("{:.2}-{:.2}", it.wall_per_virtual.p10, it.wall_per_virtual.p90),
            seconds(&it.boot_s),
            seconds(&it.begin_s),
            seconds(&it.measured_s),
            seconds(&it.end_s),
            seconds(&it.wall_s),
            it.what.clone(),
        ]);
    }
    table.render()
}
