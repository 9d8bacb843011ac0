//! The version of vcc, for files with measurements.

/// The version and, if the build had `VCC_COMMIT`, the commit.
pub fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("VCC_COMMIT") {
        Some(commit) if !commit.is_empty() => format!("{version} ({commit})"),
        _ => version.into(),
    }
}
