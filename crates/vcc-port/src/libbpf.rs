//! The messages of libbpf: kept off stderr, and searched for the verifier's log.

use std::cell::RefCell;
use std::sync::Once;

use libbpf_rs::{PrintLevel, set_print};

thread_local! {
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// libbpf has one callback per process, and calls it on the thread that called libbpf.
fn hear(_: PrintLevel, message: String) {
    HEARD.with_borrow_mut(|lines| {
        if let Some(messages) = lines {
            messages.push(message);
        }
    });
}

pub(crate) fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Warn, hear)));
    });
}

/// Runs `step`; returns its result and the messages of libbpf meanwhile.
pub(crate) fn listen<T>(step: impl FnOnce() -> T) -> (T, String) {
    silence();
    HEARD.set(Some(Vec::new()));
    let result = step();
    let messages = HEARD.take().unwrap_or_default();
    (result, messages.concat())
}

/// The verifier's message about a program that it refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub program: String,
    pub last_line: String,
    pub log: String,
}

/// The refusal in the messages of libbpf, if they contain one.
pub(crate) fn refusal(output: &str) -> Option<Refusal> {
    let (before, log) = output.split_once("-- BEGIN PROG LOAD LOG --")?;
    let log = log.split("-- END PROG LOAD LOG --").next()?;
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
    let last_line = log.lines().map(str::trim).rfind(is_said)?;
    // libbpf: prog 'NAME':
    let program = before.rsplit("prog '").next()?.split('\'').next()?;
    Some(Refusal { program: program.into(), last_line: last_line.into(), log: log.trim().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_program_and_the_last_words() {
        let output = "libbpf: prog 'a': BPF program load failed\n\
                    libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n\
                    0: R1=ctx() R10=fp0\n1: (b7) r0 = 0\n2: (61) r0 = *(u32 *)(r0 +0)\n\
                    R0 invalid mem access 'scalar'\n\
                    processed 3 insns (limit 1000000)\n\
                    -- END PROG LOAD LOG --\n\
                    libbpf: failed to load object\n";
        let refusal = refusal(output).expect("a refusal");
        assert_eq!(refusal.program, "a");
        assert_eq!(refusal.last_line, "R0 invalid mem access 'scalar'");
        assert!(refusal.log.starts_with("0: R1") && refusal.log.ends_with("(limit 1000000)"));
    }

    #[test]
    fn no_log_no_refusal() {
        assert_eq!(refusal("libbpf: failed to load object\n"), None);
        let empty = "-- BEGIN PROG LOAD LOG --\n-- END PROG LOAD LOG --";
        assert_eq!(refusal(empty), None);
    }
}
