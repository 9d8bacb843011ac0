//! Which line of the source an instruction was made of: the line information of .BTF.ext
//! (Documentation/bpf/btf.rst of the kernel, section 4.2).

use std::fmt;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub file: String,
    pub number: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

/// By the index of the first instruction of each, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<(usize, Line)>);

impl Lines {
    /// The lines of section `section`. None if the sections do not have this format: what uses the
    /// lines then does without.
    pub(crate) fn parse(btf: &[u8], ext: &[u8], section: &str) -> Option<Self> {
        const LINE_SHIFT: u32 = 10;
        let strings = btf_strings(btf)?;
        let infos = {
            let header_bytes = word(ext, 4)? as usize;
            let at = header_bytes.checked_add(word(ext, 16)? as usize)?;
            ext.get(at..at.checked_add(word(ext, 20)? as usize)?)?
        };
        let record_bytes = word(infos, 0)? as usize;
        let mut lines = Vec::new();
        let mut rest = infos.get(4..)?;
        while !rest.is_empty() {
            let (name, count) = (text(strings, word(rest, 0)?)?, word(rest, 4)? as usize);
            let records = rest.get(8..8usize.checked_add(count.checked_mul(record_bytes)?)?)?;
            if name == section && record_bytes >= 16 {
                for record in records.chunks_exact(record_bytes) {
                    let file = text(strings, word(record, 4)?)?.to_owned();
                    let number = word(record, 12)? >> LINE_SHIFT;
                    lines.push((word(record, 0)? as usize / 8, Line { file, number }));
                }
            }
            rest = &rest[8 + records.len()..];
        }
        lines.sort_by_key(|(at, _)| *at);
        Some(Self(lines))
    }

    /// The line of an instruction, by its index.
    pub(crate) fn at(&self, instruction: usize) -> Option<&Line> {
        let after = self.0.partition_point(|(at, _)| *at <= instruction);
        self.0[..after].last().map(|(_, line)| line)
    }
}

/// The strings of .BTF; None if it does not have its format.
pub(crate) fn btf_strings(btf: &[u8]) -> Option<&[u8]> {
    let header_bytes = word(btf, 4)? as usize;
    let at = header_bytes.checked_add(word(btf, 16)? as usize)?;
    btf.get(at..at.checked_add(word(btf, 20)? as usize)?)
}

/// The offset of the first instruction that .BTF.ext would have changed by the running kernel's types
/// (bpf_core_relo; section 4.2 likewise). None if there is none.
pub(crate) fn core_relocation(ext: &[u8]) -> Option<u64> {
    const WITHOUT_BYTES: u32 = 24;
    let header_bytes = word(ext, 4)?;
    if header_bytes <= WITHOUT_BYTES || word(ext, 28)? == 0 {
        return None;
    }
    // Behind the records' size, and the section's name and count.
    let at = (header_bytes as usize).checked_add(word(ext, 24)? as usize)?;
    Some(at.checked_add(12).and_then(|at| word(ext, at)).unwrap_or(0).into())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn text(strings: &[u8], at: u32) -> Option<&str> {
    let rest = strings.get(at as usize..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == 0)?]).ok()
}
