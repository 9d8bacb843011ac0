//! The metrics of an experiment: what each run of a case yields.

/// One of them; the name ends with its unit.
#[derive(Debug, Clone)]
pub struct Metric {
    pub name: String,
    /// Its definition in words.
    pub text: String,
}

impl Metric {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// In the order in which they are reported.
#[derive(Debug, Clone)]
pub struct Metrics {
    all: Vec<Metric>,
    /// Ends the message about an unknown metric.
    hint: String,
}

impl Metrics {
    pub fn new(all: Vec<Metric>) -> Self {
        Self { all, hint: String::new() }
    }

    pub fn with_hint(self, hint: String) -> Self {
        Self { hint, ..self }
    }

    pub fn names(&self) -> Vec<&str> {
        self.all.iter().map(|metric| metric.name.as_str()).collect()
    }

    /// Name and definition of each.
    pub fn definitions(&self) -> Vec<(&str, &str)> {
        self.all.iter().map(|metric| (metric.name.as_str(), metric.text.as_str())).collect()
    }

    /// Fails if the experiment has no such metric.
    pub fn check(&self, name: &str) -> Result<(), String> {
        match self.all.iter().any(|metric| metric.name == name) {
            true => Ok(()),
            false => Err(format!("there is no metric '{name}'{}", self.hint)),
        }
    }
}
