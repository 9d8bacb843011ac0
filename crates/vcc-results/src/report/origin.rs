//! The origin of a report: machine, command, time.

use serde::{Deserialize, Serialize};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub kernel: String,
    pub cpu: String,
    pub cpus: usize,
}

impl Machine {
    pub(super) fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info.lines().find(|line| line.starts_with("model name"));
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            cpu: model.and_then(|line| line.split_once(": ")).map_or("", |(_, name)| name).into(),
            cpus: available_parallelism().map_or(1, |count| count.get()),
        }
    }

    /// Its kernel's version without the distributor's suffix.
    pub(super) fn kernel_version(&self) -> &str {
        self.kernel.split(['-', '+']).next().unwrap_or_default()
    }
}

/// This process's command line, as a shell takes it.
pub(super) fn this_command() -> String {
    let words: Vec<String> = env::args_os().map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// A clock before 1970 is as good as none.
pub(super) fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command that measures it again: the recorded one, without where it wrote its files. Before there
/// was `vcc-lab`, experiments were run by `vcc lab` and benchmarks by `vcc bench`.
pub(super) fn portable_command(recorded: &str) -> String {
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
    fn a_shell_reads_the_words_that_were_given() {
        let words = ["vcc", "--json", "out/a.json", "two words", "it's", "", "$HOME"].map(quoted);
        let expected =
            ["vcc", "--json", "out/a.json", "'two words'", r"'it'\''s'", "''", "'$HOME'"];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_portable_command_names_no_place_of_the_machine() {
        let recorded =
            r"/opt/build/vcc-lab run vcc-fig11 --runs 9 --record --json '/a b/c.json' --plot=x.svg";
        assert_eq!(portable_command(recorded), "vcc-lab run vcc-fig11 --runs 9");
        assert_eq!(
            portable_command("./vcc-lab run tmp/it.toml --series"),
            "vcc-lab run it.toml --series"
        );
        assert_eq!(portable_command("/usr/bin/vcc lab run lab"), "vcc-lab run lab");
        assert_eq!(portable_command("target/release/vcc bench host"), "vcc-lab bench host");
        assert_eq!(words(r"a 'it'\''s' ''"), ["a", "it's"]);
    }
}
