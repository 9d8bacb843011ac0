//! The release of the running kernel.

use std::ffi::CStr;

pub(crate) const OLDEST: (u32, u32) = (6, 6);

/// The kernel release, which `uname -r` prints.
pub(crate) fn release() -> String {
    // SAFETY: all-zero bytes are a valid utsname.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the structure that it is given.
    if unsafe { libc::uname(&mut names) } < 0 {
        return "of unknown release".into();
    }
    // SAFETY: the kernel ends each of the names with NUL.
    unsafe { CStr::from_ptr(names.release.as_ptr()) }.to_string_lossy().into_owned()
}

/// The major and minor number of a release such as 6.1.0-18-amd64.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases() {
        assert_eq!(version("6.18.44-x"), Some((6, 18)));
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("6.6-rc1"), Some((6, 6)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.1.0") < Some(OLDEST) && version("10.0") > Some(OLDEST));
    }
}
