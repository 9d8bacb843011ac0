//! Digests of the workspace's sources, for the build.

use super::code;
use super::digest::Digest;
use super::kinds::{Kind, OUTSIDE, Part};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A checkout, or as much of it as a package has.
pub struct Workspace {
    root: PathBuf,
    /// What digests were made of; some of it may be missing.
    pub inputs: BTreeSet<PathBuf>,
    digests: BTreeMap<String, Option<String>>,
}

impl Workspace {
    pub fn new(root: &Path) -> Self {
        Self { root: root.into(), inputs: BTreeSet::new(), digests: BTreeMap::new() }
    }

    /// Names and digests of the parts that a kind depends on. A part that is missing has none.
    pub fn parts(&mut self, kind: &Kind) -> io::Result<Vec<(String, String)>> {
        let crates = self.with_used(kind.crates)?;
        let outside = OUTSIDE.iter().filter(|(user, _)| crates.contains(*user));
        let parts = kind.parts.iter().chain(outside.map(|(_, part)| part));
        let parts = parts.map(|Part { name, paths }| {
            ((*name).to_owned(), paths.iter().map(|path| (*path).to_owned()).collect())
        });
        let crates = crates.iter().map(|name| (name.clone(), of_crate(name)));
        let mut all: Vec<(String, Vec<String>)> = parts.chain(crates).collect();
        all.sort();
        let mut digests = Vec::new();
        for (name, paths) in all {
            let digest = match self.digests.get(&name) {
                Some(known) => known.clone(),
                None => self.digest(&paths)?,
            };
            self.digests.insert(name.clone(), digest.clone());
            digests.extend(digest.map(|digest| (name, digest)));
        }
        Ok(digests)
    }

    /// These crates and all that they use, by the workspace's crates in their Cargo.toml.
    fn with_used(&mut self, crates: &[&str]) -> io::Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        let mut new: Vec<String> = crates.iter().map(|name| (*name).to_owned()).collect();
        while let Some(name) = new.pop() {
            let manifest = self.root.join("crates").join(&name).join("Cargo.toml");
            if all.contains(&name) || !manifest.exists() {
                continue;
            }
            new.extend(used(&fs::read_to_string(&manifest)?).map(str::to_owned));
            self.inputs.insert(manifest);
            all.insert(name);
        }
        Ok(all)
    }

    /// None if there are no such files.
    fn digest(&mut self, paths: &[String]) -> io::Result<Option<String>> {
        let mut files = BTreeSet::new();
        for path in paths {
            match path.rsplit_once("/*.") {
                Some((directory, extension)) => {
                    let has = |path: &PathBuf| path.extension().is_some_and(|it| it == extension);
                    let own = entries(&self.root.join(directory))?.into_iter().filter(has);
                    let own: Vec<PathBuf> = own.collect();
                    self.inputs.extend(own.iter().cloned());
                    files.extend(own);
                }
                None => {
                    tree(&self.root.join(path), &mut files)?;
                    self.inputs.insert(self.root.join(path));
                }
            }
        }
        let mut digest = Digest::default();
        let mut tests: Vec<PathBuf> = Vec::new();
        let mut kept = Vec::new();
        for path in files {
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            let names = code::parse(&extension, &text).test_modules;
            tests.extend(names.iter().flat_map(|name| files_of_module(&path, name)));
            kept.push((path.clone(), extension.into_owned(), text));
        }
        kept.retain(|(path, ..)| !tests.iter().any(|test| path.starts_with(test)));
        for (path, extension, text) in &kept {
            digest.add(&path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy());
            code::parse(extension, text).lines.iter().for_each(|line| digest.add(line));
        }
        Ok((!kept.is_empty()).then(|| digest.text()))
    }
}

/// All that is compiled of a crate, besides its tests.
fn of_crate(name: &str) -> Vec<String> {
    ["src", "*.rs", "*.c", "*.h"].map(|files| format!("crates/{name}/{files}")).into()
}

/// Crates of the workspace that a Cargo.toml names, but not for tests.
fn used(manifest: &str) -> impl Iterator<Item = &str> {
    let mut is_wanted = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            is_wanted = ["[dependencies]", "[build-dependencies]"].contains(&line.trim());
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        (is_wanted && name.starts_with("vcc-")).then_some(name)
    })
}

/// A file, or all files below a directory; none if it is missing.
fn tree(path: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        return entries(path)?.iter().try_for_each(|path| tree(path, files));
    }
    if path.is_file() {
        files.insert(path.into());
    }
    Ok(())
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// Where the module `name` can be that the file at `path` declares.
fn files_of_module(path: &Path, name: &str) -> [PathBuf; 2] {
    let stem = path.file_stem().unwrap_or_default();
    let directory = path.parent().unwrap_or(Path::new(""));
    let is_root = ["mod", "lib", "main"].iter().any(|root| stem == *root);
    let directory = if is_root { directory.to_owned() } else { directory.join(stem) };
    [directory.join(name), directory.join(format!("{name}.rs"))]
}

#[cfg(test)]
mod tests {
    use super::super::kinds::KINDS;
    use super::*;

    const KIND: Kind =
        Kind { name: "x", crates: &["vcc-a"], parts: &[Part { name: "g", paths: &["g/*.h"] }] };

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn parts(root: &Path) -> Vec<(String, String)> {
        Workspace::new(root).parts(&KIND).unwrap()
    }

    /// Names of the parts that a change changes.
    fn changed(root: &Path, path: &str, text: &str) -> Vec<String> {
        let before = parts(root);
        write(root, path, text);
        let after = parts(root).into_iter().filter(|part| !before.contains(part));
        after.map(|(name, _)| name).collect()
    }

    #[test]
    fn a_change_of_code_changes_the_parts_that_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert!(parts(root).is_empty(), "all may be missing");
        let manifest =
            "[dependencies]\nvcc-b.workspace = true\n[dev-dependencies]\nvcc-c = \"1\"\n";
        write(root, "crates/vcc-a/Cargo.toml", manifest);
        let rust = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
        write(root, "crates/vcc-a/src/lib.rs", rust);
        for name in ["b", "c"] {
            write(root, &format!("crates/vcc-{name}/Cargo.toml"), "[package]\n");
            write(root, &format!("crates/vcc-{name}/src/lib.rs"), "fn b() {}\n");
        }
        write(root, "g/g.h", "int g;\n");
        let names: Vec<_> = parts(root).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["g", "vcc-a", "vcc-b"]);
        let commented = format!("//! About it.\n\n{rust}");
        assert!(changed(root, "crates/vcc-a/src/lib.rs", &commented).is_empty());
        assert!(changed(root, "crates/vcc-a/src/tests.rs", "fn t() {}\n").is_empty());
        assert!(changed(root, "crates/vcc-a/src/tests/more.rs", "fn t() {}\n").is_empty());
        assert!(changed(root, "crates/vcc-a/tests/t.rs", "fn t() {}\n").is_empty());
        assert!(changed(root, "crates/vcc-c/src/lib.rs", "fn c() {}\n").is_empty());
        assert!(changed(root, "g/g.c", "int c;\n").is_empty());
        assert_eq!(changed(root, "g/g.h", "int h;\n"), ["g"]);
        assert_eq!(changed(root, "crates/vcc-b/src/lib.rs", "fn c() {}\n"), ["vcc-b"]);
        assert_eq!(changed(root, "crates/vcc-a/src/m/mod.rs", "fn m() {}\n"), ["vcc-a"]);
        assert_eq!(changed(root, "crates/vcc-a/native.c", "int n;\n"), ["vcc-a"]);
    }

    #[test]
    fn each_kind_has_all_its_parts_and_the_engine() {
        let mut workspace = Workspace::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        for kind in KINDS {
            let parts = workspace.parts(kind).unwrap();
            let has = |name: &str| parts.iter().any(|(part, _)| part == name);
            assert!(has("engine") && has("vcc-engine"), "{}: {parts:?}", kind.name);
            let named = kind.parts.iter().map(|part| part.name).chain(kind.crates.iter().copied());
            named.for_each(|name| assert!(has(name), "{}: there is no {name}", kind.name));
            assert_eq!(has("datapath"), has("vcc-port"), "{}", kind.name);
        }
        let missing = workspace.inputs.iter().filter(|path| !path.exists());
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    }
}
