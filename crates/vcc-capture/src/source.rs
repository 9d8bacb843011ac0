//! The bytes of a file, in order, with their offset.

use std::io::Read;

use crate::problem::{Problem, What};

pub(crate) struct Source<R> {
    reader: R,
    offset: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, offset: 0 }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends the next bytes to `to`. False, and nothing is appended, at the end of the file.
    ///
    /// # Errors
    /// The file ends before the last of these bytes, or cannot be read. `inside` names what they belong to.
    pub(crate) fn append(
        &mut self,
        bytes: usize,
        to: &mut Vec<u8>,
        inside: Inside,
    ) -> Result<bool, Problem> {
        let before = to.len();
        let read = self.reader.by_ref().take(bytes as u64).read_to_end(to);
        let got = to.len() - before;
        self.offset += got as u64;
        read.map_err(|error| What::Unreadable(error.to_string()).at(self.offset))?;
        match got {
            _ if got == bytes => Ok(true),
            0 => Ok(false),
            _ => Err(inside.truncated()),
        }
    }

    /// The same, where the file must not end.
    pub(crate) fn append_rest(
        &mut self,
        bytes: usize,
        to: &mut Vec<u8>,
        inside: Inside,
    ) -> Result<(), Problem> {
        if self.append(bytes, to, inside)? { Ok(()) } else { Err(inside.truncated()) }
    }
}

/// A part of a file, and where it begins.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    pub what: &'static str,
    pub offset: u64,
}

impl Inside {
    fn truncated(self) -> Problem {
        What::Truncated(self.what).at(self.offset)
    }
}
