//! Where figures come from: build, time, machine, command.

use super::text::line;
use crate::report::{Machine, when};

/// `vcc 0.1.0 (2b0d7f4)`; files of older builds do not say.
pub fn build(version: Option<&str>) -> String {
    version.map_or_else(|| "an unrecorded build of vcc".into(), |it| line(&format!("vcc {it}")))
}

pub fn time(unix_s: u64) -> String {
    when::utc(unix_s).unwrap_or_else(|| "an unknown day".into())
}

/// The day alone.
pub fn day(time: &str) -> &str {
    time.split(' ').next().filter(|day| day.contains('-')).unwrap_or(time)
}

/// `Linux 6.18.5, 2 CPUs`
pub fn machine(kernel: &str, cpus: usize) -> String {
    let unit = if cpus == 1 { "CPU" } else { "CPUs" };
    format!("{}, {cpus} {unit}", line(&format!("Linux {kernel}")))
}

/// Without the distributor's suffix.
pub fn kernel(machine: &Machine) -> &str {
    machine.kernel.split(['-', '+']).next().unwrap_or_default()
}

/// The command that measures it again: the recorded one, without where it wrote its files. Before there
/// was `vcc-lab`, experiments were run by `vcc lab` and benchmarks by `vcc bench`.
pub fn command(recorded: &str) -> String {
    const WRITES: [&str; 2] = ["--json", "--plot"];
    let words = words(recorded);
    let mut kept = vec!["vcc-lab".to_owned()];
    let mut arguments = words.iter().skip(1).peekable();
    arguments.next_if(|word| *word == "lab");
    while let Some(word) = arguments.next() {
        if word == "--record" {
            continue;
        }
        if WRITES.contains(&word.as_str()) {
            arguments.next();
        } else if !WRITES.iter().any(|option| word.starts_with(&format!("{option}="))) {
            // A file is at another place elsewhere.
            let name = word.rsplit('/').next().unwrap_or_default();
            kept.push(if word.contains('/') { name.to_owned() } else { word.clone() });
        }
    }
    kept.join(" ")
}

/// Words of a command line that was written for a shell, with single quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in command.chars() {
        match c {
            _ if escaped => {
                word.push(c);
                escaped = false;
            }
            '\'' => quoted = !quoted,
            '\\' if !quoted => escaped = true,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_without_places_of_the_machine() {
        let recorded =
            r"/opt/build/vcc-lab run vcc-fig11 --runs 9 --record --json '/a b/c.json' --plot=x.svg";
        assert_eq!(command(recorded), "vcc-lab run vcc-fig11 --runs 9");
        assert_eq!(command("./vcc-lab run tmp/it.toml --series"), "vcc-lab run it.toml --series");
        assert_eq!(command("/usr/bin/vcc lab run lab"), "vcc-lab run lab");
        assert_eq!(command("target/release/vcc bench host"), "vcc-lab bench host");
        assert_eq!(words(r"a 'it'\''s' ''"), ["a", "it's"]);
    }

    #[test]
    fn a_clock_that_was_not_set_has_no_day() {
        assert_eq!(day(&time(1_709_164_800)), "2024-02-29");
        assert_eq!(day(&time(0)), "an unknown day");
    }
}
