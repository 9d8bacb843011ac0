//! The release of the running kernel, and what is known of kernels.

use std::ffi::CStr;
use std::sync::OnceLock;

/// The first with TCX. No kernel before the first of [`TRIED`] was tried.
pub(crate) const OLDEST: (u32, u32) = (6, 6);

/// The kernels on which `make test` tries vcc, in order. Messages and pages name them by [`tried`].
const TRIED: [(u32, u32); 3] = [(6, 12), (6, 18), (7, 3)];

/// The kernels on which vcc is known to work, for a message: `Linux 6.12, 6.18 or 7.3`.
pub(crate) fn tried() -> String {
    let names = TRIED.map(|(major, minor)| format!("{major}.{minor}"));
    let (last, others) = names.split_last().expect("some are tried");
    format!("Linux {} or {last}", others.join(", "))
}

/// Whether vcc is known to work on kernels of this release's minor version.
pub(crate) fn is_tried(release: &str) -> bool {
    version(release).is_some_and(|version| TRIED.contains(&version))
}

/// Whether vcc is known to work on the running kernel, which refuses a program, and what to do, for a
/// message.
pub(crate) fn experience() -> String {
    experience_of(&release())
}

fn experience_of(release: &str) -> String {
    if is_tried(release) {
        return "vcc works on other builds of this kernel: please report this".into();
    }
    format!("vcc is not known to work on this kernel: boot {}", tried())
}

/// Lets the tests of this process, and commands that they start, take the kernel for one with PREEMPT_RT.
#[cfg(feature = "testing")]
pub(crate) const AS_REAL_TIME: &str = "VCC_AS_PREEMPT_RT";

#[cfg(feature = "testing")]
pub(crate) fn is_taken_for_real_time() -> bool {
    std::env::var_os(AS_REAL_TIME).is_some()
}

#[cfg(not(feature = "testing"))]
pub(crate) fn is_taken_for_real_time() -> bool {
    false
}

/// Whether all but the innermost of the kernel may be preempted (PREEMPT_RT).
pub(crate) fn is_real_time() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| is_taken_for_real_time() || names().version.contains("PREEMPT_RT"))
}

/// The kernel release, which `uname -r` prints.
pub(crate) fn release() -> String {
    names().release
}

struct Names {
    release: String,
    /// How it was built.
    version: String,
}

fn names() -> Names {
    // SAFETY: all-zero bytes are a valid utsname.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the structure that it is given.
    if unsafe { libc::uname(&mut names) } < 0 {
        return Names { release: "of unknown release".into(), version: String::new() };
    }
    let text = |name: &[libc::c_char]| {
        // SAFETY: the kernel ends each of the names with NUL.
        unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned()
    };
    Names { release: text(&names.release), version: text(&names.version) }
}

/// The major and minor number of a release such as 6.1.0-18-amd64.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

/// Why the daemon has to turn the wheels, for a message.
pub(crate) fn lack_of_timers() -> String {
    format!("Linux {} gives BPF programs no timers", release())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Whoever chooses a kernel reads one of these.
    const PAGES: [&str; 5] = [
        "README.md",
        "docs/kernels.md",
        "docs/limits.md",
        "docs/packaging.md",
        "packaging/debian/control",
    ];

    #[test]
    fn a_refusal_says_whether_the_kernel_is_known() {
        assert!(experience_of("6.12.117-cloud").contains("works on other builds"));
        for release in ["6.8.0-60-generic", "7.1.4", "unknown"] {
            let other = experience_of(release);
            assert!(
                other.contains("not known to work on this kernel: boot Linux 6.12, "),
                "{other}"
            );
        }
        assert!(TRIED.is_sorted() && TRIED[0] >= OLDEST);
    }

    #[test]
    fn pages_name_the_kernels_that_messages_name() {
        for page in PAGES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
            let text = fs::read_to_string(path).expect(page);
            let words: Vec<&str> = text.split_whitespace().collect();
            let text = words.join(" ").replace(" and ", " or ");
            assert!(text.contains(&tried()), "{page} does not say `{}`", tried());
            assert!(!text.contains("6.6 or newer"), "{page}: 6.6 to 6.11 were not tried");
        }
    }

    #[test]
    fn versions_of_releases() {
        assert_eq!(version("6.18.44-x"), Some((6, 18)));
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("6.6-rc1"), Some((6, 6)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.1.0") < Some(OLDEST) && version("10.0") > Some(OLDEST));
    }
}
