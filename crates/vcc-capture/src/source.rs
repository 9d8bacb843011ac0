//! The bytes of a file, in order, with their offset.

use std::io::{self, BufRead};

use crate::problem::{Problem, What};

/// Not generic, so that all of it is compiled here.
pub(crate) struct Source<'a> {
    reader: Box<dyn BufRead + 'a>,
    offset: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(reader: Box<dyn BufRead + 'a>) -> Self {
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
        let mut left = bytes;
        while left > 0 {
            let unreadable = |error: io::Error| What::Unreadable(error.to_string());
            let ready = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                ready => ready.map_err(|error| unreadable(error).at(self.offset))?,
            };
            if ready.is_empty() {
                return if left == bytes { Ok(false) } else { Err(inside.truncated()) };
            }
            let got = left.min(ready.len());
            to.extend_from_slice(&ready[..got]);
            self.reader.consume(got);
            self.offset += got as u64;
            left -= got;
        }
        Ok(true)
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
