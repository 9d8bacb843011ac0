//! Names that are unique on the machine.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

const SUFFIX_DIGITS: usize = 5;
const RADIX: u32 = 36;
/// Number of names per process before they collide with the next process ID's.
const PER_PROCESS: u32 = RADIX * RADIX;

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// `name` with a suffix unique in this process, and almost always among processes: process IDs may
/// coincide between containers, and wrap.
pub(crate) fn next(name: &str) -> String {
    let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
    let mut number = process::id().wrapping_mul(PER_PROCESS).wrapping_add(taken);
    let mut suffix = [0; SUFFIX_DIGITS];
    for digit in suffix.iter_mut().rev() {
        *digit = number % RADIX;
        number /= RADIX;
    }
    let digits = suffix.iter().filter_map(|&digit| char::from_digit(digit, RADIX));
    format!("{name}_{}", digits.collect::<String>())
}

/// Does `next` produce such names?
pub(crate) fn is_ours(kernel_name: &str) -> bool {
    let Some((name, suffix)) = kernel_name.rsplit_once('_') else { return false };
    vcc_guest::find(name).is_some() && suffix.len() == SUFFIX_DIGITS
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The kernel's maximum (TCP_CA_NAME_MAX without the NUL).
    const MAX_BYTES: usize = 15;

    #[test]
    fn names_fit_and_differ() {
        let mut made = HashSet::new();
        for &name in vcc_guest::names() {
            for _ in 0..PER_PROCESS {
                let next = next(name);
                assert!(next.len() <= MAX_BYTES, "{next}");
                assert!(is_ours(&next), "{next}");
                assert!(made.insert(next));
            }
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in ["dctcp", "dctcp_reno", "cubic", "other_00000"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
