//! Sibling modules of a crate do not use each other in a circle (docs/contributing.md): whoever reads
//! one of them would have to read all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree};

/// A module by its path within its crate; the crate's root is empty.
type Module = Vec<String>;

/// Paths that a file names: those of `use`, and those that begin with `crate`, `super` or `self`.
#[derive(Default)]
struct Named(Vec<Vec<String>>);

impl Named {
    fn add_tree(&mut self, mut prefix: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.add_tree(prefix, &path.tree);
            }
            UseTree::Name(name) => {
                prefix.push(name.ident.to_string());
                self.0.push(prefix);
            }
            UseTree::Rename(rename) => {
                prefix.push(rename.ident.to_string());
                self.0.push(prefix);
            }
            UseTree::Glob(_) => self.0.push(prefix),
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.add_tree(prefix.clone(), item));
            }
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.add_tree(Vec::new(), &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|it| it.ident.to_string()).collect();
        if ["crate", "super", "self"].contains(&names[0].as_str()) {
            self.0.push(names);
        }
        visit::visit_path(self, path);
    }
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a readable directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

fn module_of(sources: &Path, file: &Path) -> Module {
    let within = file.strip_prefix(sources).expect("a source").with_extension("");
    let mut module: Module =
        within.iter().map(|part| part.to_str().expect("UTF-8").to_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The module that a path from `module` leads to, or into.
fn target(modules: &BTreeSet<Module>, module: &Module, path: &[String]) -> Option<Module> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let mut whole: Module = match path[0].as_str() {
        "crate" => path[1..].to_vec(),
        "super" => [&module[..module.len().checked_sub(ups)?], &path[ups..]].concat(),
        "self" => [module, &path[1..]].concat(),
        _ => {
            let child = [module.as_slice(), &path[..1]].concat();
            modules.contains(&child).then(|| [module, path].concat())?
        }
    };
    while !modules.contains(&whole) {
        whole.pop()?;
    }
    Some(whole)
}

/// Which siblings each module uses, itself or in a part of it: by parent, then by name.
type Siblings = BTreeMap<Module, BTreeMap<String, BTreeSet<String>>>;

fn siblings(sources: &Path) -> Siblings {
    let files: BTreeMap<Module, PathBuf> =
        rust_files(sources).into_iter().map(|file| (module_of(sources, &file), file)).collect();
    let modules: BTreeSet<Module> = files.keys().cloned().collect();
    let mut all = Siblings::new();
    for (module, file) in &files {
        if module.iter().any(|part| part == "tests") {
            continue;
        }
        let text = fs::read_to_string(file).expect("a readable file");
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let mut named = Named::default();
        named.visit_file(&parsed);
        for used in named.0.iter().filter_map(|path| target(&modules, module, path)) {
            let shared = module.iter().zip(&used).take_while(|(own, its)| own == its).count();
            if let (Some(own), Some(its)) = (module.get(shared), used.get(shared)) {
                let of_parent = all.entry(module[..shared].to_vec()).or_default();
                of_parent.entry(own.clone()).or_default().insert(its.clone());
            }
        }
    }
    all
}

/// The modules on the way from one back to itself, if there is one.
fn circle(uses: &BTreeMap<String, BTreeSet<String>>, from: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        for next in uses.get(&way[way.len() - 1]).into_iter().flatten() {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == from {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

fn circles(sources: &Path) -> Vec<String> {
    let mut found = BTreeMap::new();
    for (parent, uses) in siblings(sources) {
        for from in uses.keys() {
            if let Some(way) = circle(&uses, from) {
                let members: BTreeSet<String> = way.iter().cloned().collect();
                let place = [&["crate".to_owned()], parent.as_slice()].concat().join("::");
                found.entry((place, members)).or_insert(way);
            }
        }
    }
    found.into_iter().map(|((place, _), way)| format!("{place}: {}", way.join(" -> "))).collect()
}

#[test]
fn no_sibling_modules_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).expect("the crates") {
        let package = entry.expect("a crate").path();
        if package.join("src").is_dir() {
            let name = package.file_name().expect("a name").to_string_lossy().into_owned();
            found.extend(
                circles(&package.join("src")).into_iter().map(|circle| format!("{name}, {circle}")),
            );
        }
    }
    found.sort();
    assert!(found.is_empty(), "{found:#?}: move what both need into a third file");
}

#[test]
fn a_circle_is_found() {
    let sources = tempfile::tempdir().expect("a directory");
    let write = |file: &str, text: &str| {
        let path = sources.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("lib.rs", "mod a; mod b; mod c;");
    write("a/mod.rs", "mod inner;");
    write("a/inner.rs", "use crate::b::{self, X};");
    write("b.rs", "use super::c::Y; #[cfg(test)] mod tests { use crate::a::Z; }");
    write("c.rs", "struct Y;");
    assert_eq!(circles(sources.path()), [""; 0]);
    write("c.rs", "fn f() { crate::a::g() }");
    let found = circles(sources.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crate: "), "{found:?}");
}
