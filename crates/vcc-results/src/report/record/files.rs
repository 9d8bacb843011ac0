//! The files of a folder.

use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a folder with this extension, sorted.
pub(in crate::report) fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().map_err(|source| unreadable(folder, source))?;
    paths.retain(|path| path.extension().is_some_and(|it| it == extension) && path.is_file());
    paths.sort();
    Ok(paths)
}

pub(in crate::report) fn unreadable(path: &Path, source: std::io::Error) -> Error {
    Error::Read { path: path.into(), source }
}
