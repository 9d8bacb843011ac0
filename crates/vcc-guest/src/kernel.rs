//! What the running kernel has.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;

use crate::{Error, Result};

pub(crate) const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The kernel's description of its types.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The names that TCP_CONGESTION accepts.
pub fn available() -> Result<Vec<String>> {
    available_in(Path::new(AVAILABLE))
}

pub(crate) fn available_in(path: &Path) -> Result<Vec<String>> {
    let line = fs::read_to_string(path).map_err(|source| Error::Available { source })?;
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

/// The kernel's struct_ops for TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StructOps {
    /// Since Linux 7.1, sending that resumes has a hook of its own, and cwnd_event is not called for it.
    pub has_tx_start: bool,
}

/// The struct_ops that the types in the file describe. An error names what is missing, for a message.
pub(crate) fn struct_ops(btf: &Path) -> std::result::Result<StructOps, String> {
    let release = release();
    if !btf.exists() {
        return Err(format!(
            "Linux {release} has no BTF ({}, CONFIG_DEBUG_INFO_BTF), which BPF struct_ops need",
            btf.display()
        ));
    }
    let types =
        Btf::from_path(btf).map_err(|error| format!("cannot read {}: {error:#}", btf.display()))?;
    let operations: Option<Struct<'_>> = types.type_by_name("tcp_congestion_ops");
    let value: Option<Struct<'_>> = types.type_by_name("bpf_struct_ops_tcp_congestion_ops");
    let (Some(operations), Some(_)) = (operations, value) else {
        return Err(format!(
            "Linux {release} has no BPF struct_ops for TCP, which came with 5.6 (CONFIG_BPF_SYSCALL, \
             CONFIG_BPF_JIT)"
        ));
    };
    let name = Some(OsStr::new("cwnd_event_tx_start"));
    Ok(StructOps { has_tx_start: operations.iter().any(|member| member.name == name) })
}

/// The kernel release, which `uname -r` prints.
pub(crate) fn release() -> String {
    // SAFETY: all-zero bytes are a valid utsname.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the structure that it is given.
    if unsafe { libc::uname(&mut names) } < 0 {
        return "of unknown release".into();
    }
    // SAFETY: the kernel ends the name with NUL.
    unsafe { CStr::from_ptr(names.release.as_ptr()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let why = struct_ops(&directory.path().join("vmlinux")).expect_err("no types");
        assert!(why.contains("has no BTF") && why.contains("CONFIG_DEBUG_INFO_BTF"), "{why}");
        let file = directory.path().join("garbage");
        fs::write(&file, "garbage").expect("written");
        let why = struct_ops(&file).expect_err("no types");
        assert!(why.starts_with("cannot read ") && why.contains("garbage"), "{why}");
    }

    #[test]
    fn names_are_words() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("available");
        fs::write(&file, "reno cubic flood\n").expect("written");
        assert_eq!(available_in(&file).expect("read"), ["reno", "cubic", "flood"]);
        let error = available_in(&directory.path().join("none")).expect_err("no file");
        assert!(error.to_string().contains("check that /proc is mounted"), "{error}");
    }
}
