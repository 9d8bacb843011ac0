//! BPF objects that a crate embeds, on their way into the kernel.

use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::{Error, Result, kernel, libbpf};

/// Opens `object`, which people call `what`.
pub fn open(object: &[u8], what: &str) -> Result<OpenObject> {
    let (result, said) = libbpf::listen(|| ObjectBuilder::default().open_memory(object));
    result.map_err(|e| Error::System {
        doing: format!("open {what}"),
        why: format!("{e:#} ({})", said.lines().last().unwrap_or_default()),
    })
}

pub fn load(open: OpenObject, what: &str) -> Result<Object> {
    let (result, said) = libbpf::listen(|| open.load());
    result.map_err(|e| match libbpf::verifier_last_lines(&said) {
        Some(last_lines) => {
            Error::Verifier { release: kernel::release(), what: what.into(), last_lines }
        }
        None => Error::system(format!("load {what}"), e),
    })
}
