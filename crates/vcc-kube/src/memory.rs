//! What an agent remembers over its own end: the policies that were in force, and their text for this
//! node. So a node keeps them in force while the API server is away, and a broken policy finds its last
//! good generation.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::resource::PolicyObject;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    version: u32,
    pub node: String,
    pub edition: String,
    pub text: String,
    pub policies: Vec<PolicyObject>,
}

/// Grows when an older agent would misread the file.
const VERSION: u32 = 1;
/// All policies of a node and its text are smaller.
const LONGEST_BYTES: u64 = 32 << 20;

impl Remembered {
    pub fn new(node: &str, edition: &str, text: &str, policies: Vec<PolicyObject>) -> Self {
        let (node, edition, text) = (node.to_owned(), edition.to_owned(), text.to_owned());
        Self { version: VERSION, node, edition, text, policies }
    }
}

pub struct Memory {
    file: PathBuf,
}

impl Memory {
    pub fn in_directory(directory: &Path) -> Self {
        Self { file: directory.join("kubernetes.json") }
    }

    /// None if the file has nothing of this node; an error if it is unusable.
    pub fn recall(&self, node: &str) -> Result<Option<Remembered>, String> {
        let failed = |why: String| {
            format!("cannot use {}: {why}; it will be rewritten", self.file.display())
        };
        let file = match fs::File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let mut text = String::new();
        let read = file.take(LONGEST_BYTES).read_to_string(&mut text);
        read.map_err(|error| failed(error.to_string()))?;
        let remembered: Remembered =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if remembered.version != VERSION {
            return Err(failed(format!("it is of version {}", remembered.version)));
        }
        Ok((remembered.node == node).then_some(remembered))
    }

    /// Whole or not at all.
    pub fn keep(&self, remembered: &Remembered) -> io::Result<()> {
        let directory = self.file.parent().expect("a file has a directory");
        fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec(remembered)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.file)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_is_recalled_and_what_is_damaged_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let memory = Memory::in_directory(&directory.path().join("new"));
        assert_eq!(memory.recall("n"), Ok(None));
        let (name, uid) = ("a".to_owned(), "u".to_owned());
        let spec = json!({ "rules": [] });
        let policy = PolicyObject {
            name,
            uid,
            generation: 3,
            created: 5,
            spec: spec.into(),
            is_omitted: false,
        };
        let remembered = Remembered::new("n", "0badcafe", "[[ports]]\n", vec![policy]);
        memory.keep(&remembered).expect("kept");
        assert_eq!(memory.recall("n"), Ok(Some(remembered.clone())));
        assert_eq!(memory.recall("another"), Ok(None), "the disk is another node's");
        let whole = fs::read_to_string(&memory.file).expect("a file");
        for end in 0..whole.len() {
            fs::write(&memory.file, &whole[..end]).expect("cut");
            let why = memory.recall("n").expect_err("cut short");
            assert!(why.starts_with(&format!("cannot use {}: ", memory.file.display())), "{why}");
        }
        fs::write(&memory.file, whole.replace("\"version\":1", "\"version\":2")).expect("a file");
        let why = memory.recall("n").expect_err("of another version");
        assert!(why.ends_with(": it is of version 2; it will be rewritten"), "{why}");
        memory.keep(&remembered).expect("kept");
        assert_eq!(memory.recall("n"), Ok(Some(remembered)));
    }
}
