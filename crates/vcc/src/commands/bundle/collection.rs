//! What was collected, and what could not be.

use vcc_policy::text::printable;

pub struct File {
    pub name: String,
    pub text: String,
    about: &'static str,
}

#[derive(Default)]
pub struct Collection {
    files: Vec<File>,
    problems: Vec<String>,
}

impl Collection {
    /// Control characters are escaped, as they are on a terminal.
    pub fn add(&mut self, name: impl Into<String>, about: &'static str, text: &str) {
        self.files.push(File { name: name.into(), text: printable(text).into_owned(), about });
    }

    /// Adds a text that may be an error.
    pub fn try_add(
        &mut self,
        name: impl Into<String>,
        about: &'static str,
        text: anyhow::Result<String>,
    ) {
        let name = name.into();
        match text {
            Ok(text) => self.add(name, about, &text),
            Err(error) => self.miss(&name, &error),
        }
    }

    /// `names`: what is missing.
    pub fn miss(&mut self, names: &str, error: &anyhow::Error) {
        self.note(&format!("{names}: not collected: {error:#}"));
    }

    pub fn note(&mut self, problem: &str) {
        self.problems.push(problem.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    pub fn files(&self) -> usize {
        self.files.len()
    }

    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// All that may have an address in it.
    pub fn texts(&mut self) -> Vec<&mut String> {
        let files = self.files.iter_mut().flat_map(|file| [&mut file.name, &mut file.text]);
        files.chain(&mut self.problems).collect()
    }

    /// With the list of problems and that of all files.
    pub fn finish(mut self, title: &str) -> Vec<File> {
        let problems: String = self.problems.iter().map(|problem| format!("{problem}\n")).collect();
        self.add("problems.txt", "what could not be collected, and why", &problems);
        let lines = self
            .files
            .iter()
            .map(|File { name, text, about }| format!("{:>10}  {name:<20}  {about}\n", text.len()));
        let manifest = format!("{title}\n\n{:>10}  FILE\n{}", "BYTES", lines.collect::<String>());
        self.add("MANIFEST.txt", "", &manifest);
        self.files.rotate_right(1);
        self.files
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_manifest_comes_first_and_lists_files_and_problems() {
        let mut collection = Collection::default();
        collection.add("ports.txt", "the ports", "port\x1b[2J\n");
        collection.try_add("flows.json", "the flows", Err(anyhow!("no\npermission")));
        let files = collection.finish("A bundle");
        let [manifest, ports, problems] = &files[..] else { panic!("{}", files.len()) };
        let expected = "A bundle\n\n     BYTES  FILE\n        \
                        14  ports.txt             the ports\n        \
                        41  problems.txt          what could not be collected, and why\n";
        assert_eq!((manifest.name.as_str(), manifest.text.as_str()), ("MANIFEST.txt", expected));
        assert_eq!(ports.text, "port\\u001b[2J\n");
        assert_eq!(problems.text, "flows.json: not collected: no permission\n");
    }
}
