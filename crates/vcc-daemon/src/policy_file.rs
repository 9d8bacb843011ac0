//! Policies with the text that they were read from.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use vcc_policy::{Policy, Problem};

use crate::{Error, Result};

/// With all the rules and networks that there can be, a policy has a quarter of it.
pub(crate) const LONGEST_BYTES: usize = 4 << 20;

/// A policy that can be used, with the text that it was read from.
pub(crate) struct Source {
    pub text: String,
    pub file_name: String,
    pub policy: Policy,
    pub warnings: Vec<Problem>,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = |source| Error::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let mut file = File::open(path).map_err(failed)?.take(LONGEST_BYTES as u64);
        file.read_to_string(&mut text).map_err(failed)?;
        Self::parse(text, &path.display().to_string())
    }

    pub(crate) fn parse(text: String, file_name: &str) -> Result<Self> {
        match Policy::parse(&text, file_name) {
            Ok(checked) => {
                let (policy, warnings) = (checked.policy, checked.warnings);
                Ok(Self { text, file_name: file_name.to_owned(), policy, warnings })
            }
            Err(problems) => Err(Error::BadPolicy { file: file_name.to_owned(), problems }),
        }
    }
}
