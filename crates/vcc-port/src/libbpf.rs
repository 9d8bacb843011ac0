//! The messages of libbpf: kept off stderr, and searched for the verifier's log.

use std::cell::RefCell;
use std::sync::Once;

use libbpf_rs::{PrintLevel, set_print};

thread_local! {
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// libbpf has one callback per process, and calls it on the thread that called libbpf.
fn hear(_: PrintLevel, message: String) {
    HEARD.with_borrow_mut(|heard| {
        if let Some(messages) = heard {
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

/// The last lines of the verifier's log, if the messages contain one.
pub(crate) fn verifier_last_lines(said: &str) -> Option<String> {
    const LINES: usize = 3;
    let log = said.split("-- BEGIN PROG LOAD LOG --").nth(1)?;
    let log = log.split("-- END PROG LOAD LOG --").next()?;
    let lines: Vec<&str> = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("processed "))
        .collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LINES));
    let last: Vec<&str> = last.copied().collect();
    (!last.is_empty()).then(|| last.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_those_of_the_verifier() {
        let said = "libbpf: prog 'a': BPF program load failed\n\
                    libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n\
                    0: R1=ctx() R10=fp0\n1: (b7) r0 = 0\n2: (61) r0 = *(u32 *)(r0 +0)\n\
                    R0 invalid mem access 'scalar'\n\
                    processed 3 insns (limit 1000000)\n\
                    -- END PROG LOAD LOG --\n\
                    libbpf: failed to load object\n";
        let expected = "1: (b7) r0 = 0 | 2: (61) r0 = *(u32 *)(r0 +0) \
                        | R0 invalid mem access 'scalar'";
        assert_eq!(verifier_last_lines(said).as_deref(), Some(expected));
    }

    #[test]
    fn no_log_no_lines() {
        assert_eq!(verifier_last_lines("libbpf: failed to load object\n"), None);
        let empty = "-- BEGIN PROG LOAD LOG --\n-- END PROG LOAD LOG --";
        assert_eq!(verifier_last_lines(empty), None);
    }
}
