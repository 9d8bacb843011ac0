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
}
