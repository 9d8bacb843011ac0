//! Compiles an underlay.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;
use vcc_clang::Clang;

use crate::check::{CheckError, Checked, check};
use crate::object::{Object, ObjectError};

/// Of the engine, by their paths in it.
const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));
const FRAME: &str = include_str!("underlay.bpf.c");
/// A hook's parameters are those that the engine gives, and it need not use all of them.
const LENIENT: &[&str] = &["-Wno-unused-parameter"];

#[derive(Debug, Error)]
pub enum BuildError {
    #[error("{0}")]
    Compiler(String),
    /// The compiler's output names file and line.
    #[error("the compiler rejects {path}:\n{output}", path = .path.display())]
    Refused { path: PathBuf, output: String },
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{name} failed the check: {source}")]
    NotSound { name: String, source: CheckError },
    #[error("{}{source}", place(.path, .source))]
    Object { path: PathBuf, source: ObjectError },
}

/// Compiles and checks the underlay in `source`, which may include the engine's headers and what lies
/// beside it.
pub fn build(source: &Path) -> Result<(Object, Checked), BuildError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BuildError::Io { path, source }
    };
    // The path of the source in the object's line information.
    // A FIFO would keep the compiler waiting for its other end.
    if !fs::metadata(source).map_err(failed(source))?.is_file() {
        return Err(failed(source)(io::Error::other("not a regular file")));
    }
    let work = tempfile::tempdir().map_err(failed(&std::env::temp_dir()))?;
    let engine = work.path().join("engine");
    fs::create_dir_all(engine.join("cc")).map_err(failed(&engine))?;
    for (name, text) in HEADERS {
        fs::write(engine.join(name), text).map_err(failed(&engine))?;
    }
    let frame = work.path().join("underlay.bpf.c");
    fs::write(&frame, FRAME).map_err(failed(&frame))?;
    let clang = Clang::find().map_err(BuildError::Compiler)?;
    let object = work.path().join("underlay.o");
    let name = format!("-DVCC_UNDERLAY=\"{}\"", absolute(source).display());
    let compile = |more: &[&str]| {
        let options: Vec<String> =
            more.iter().chain(LENIENT).map(|it| (*it).to_owned()).chain([name.clone()]).collect();
        clang
            .compile_with(&frame, &[&engine, &engine.join("cc")], &options, &object)
            .map_err(|e| refused(source, work.path(), &e.output))?;
        let bytes = fs::read(&object).map_err(failed(&object))?;
        Object::parse(bytes).map_err(|e| BuildError::Object { path: source.to_owned(), source: e })
    };
    // Each instruction of this one has its line (engine/cc/call.h).
    let apart = compile(&["-DCC_HOOKS_APART"])?;
    let checked = check(&apart)
        .map_err(|e| BuildError::NotSound { name: apart.name().to_owned(), source: e })?;
    Ok((compile(&[])?, checked))
}

/// The compiler's output with the names of files as the user knows them.
fn refused(source: &Path, work: &Path, output: &str) -> BuildError {
    let (work, path) = (format!("{}/", work.display()), source.to_owned());
    let is_frame = format!("In file included from {work}underlay.bpf.c:");
    let lines: Vec<String> = output
        .lines()
        .filter(|line| !line.starts_with(&is_frame))
        .map(|line| line.replace(&work, ""))
        .map(|line| line.replace(&*absolute(source).to_string_lossy(), &source.to_string_lossy()))
        .collect();
    BuildError::Refused { path, output: lines.join("\n") }
}

/// The path, unless the error has its place in the source already.
fn place(path: &Path, error: &ObjectError) -> String {
    if error.has_line() { String::new() } else { format!("{}: ", path.display()) }
}

/// The compiler searches a relative path in the frame's directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
