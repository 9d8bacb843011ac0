//! A reader of HTML as strict as XML: every element is closed in its order, or is one that is never
//! closed, and every value is quoted.

const NEVER_CLOSED: [&str; 4] = ["meta", "br", "hr", "link"];

pub struct Markup {
    elements: Vec<(String, Vec<(String, String)>)>,
}

impl Markup {
    #[track_caller]
    pub fn parse(page: &str) -> Self {
        let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
        let (mut elements, mut open) = (Vec::new(), Vec::<String>::new());
        while let Some(begin) = rest.find('<') {
            rest = &rest[begin + 1..];
            if let Some(end) = rest.strip_prefix('/') {
                let (name, after) = end.split_once('>').expect("an end");
                assert_eq!(open.pop().as_deref(), Some(name), "closed out of order");
                rest = after;
                continue;
            }
            let (name, attributes, is_closed, after) = element(rest);
            if !is_closed && !NEVER_CLOSED.contains(&name.as_str()) {
                open.push(name.clone());
            }
            elements.push((name, attributes));
            rest = after;
        }
        assert!(open.is_empty(), "never closed: {open:?}");
        Self { elements }
    }

    pub fn tags(&self) -> Vec<&str> {
        self.elements.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The values of an attribute in all elements.
    pub fn values(&self, attribute: &str) -> Vec<String> {
        let attributes = self.elements.iter().flat_map(|(_, attributes)| attributes);
        attributes.filter(|(name, _)| name == attribute).map(|(_, value)| value.clone()).collect()
    }

    /// Elements and names of attributes.
    pub fn shape(&self) -> Vec<(String, Vec<String>)> {
        let names = |attributes: &[(String, String)]| {
            attributes.iter().map(|(name, _)| name.clone()).collect()
        };
        self.elements.iter().map(|(tag, attributes)| (tag.clone(), names(attributes))).collect()
    }
}

/// Name, attributes, whether it closes itself, and what comes after it.
type Element<'a> = (String, Vec<(String, String)>, bool, &'a str);

#[track_caller]
fn element(text: &str) -> Element<'_> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let end = text.find(|c| !is_name(c)).expect("an end of a name");
    assert!(end > 0, "no name: {}", text.chars().take(40).collect::<String>());
    let (name, mut rest) = text.split_at(end);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("/>") {
            return (name.into(), attributes, true, after);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (name.into(), attributes, false, after);
        }
        let end = rest.find(|c| !is_name(c) && c != ':').expect("an end of an attribute");
        let (attribute, after) = rest.split_at(end);
        assert!(end > 0, "in {name}: {}", rest.chars().take(40).collect::<String>());
        let (value, after) = match after.strip_prefix("=\"") {
            Some(quoted) => quoted.split_once('"').expect("an end of a value"),
            None => ("", after),
        };
        attributes.push((attribute.into(), value.into()));
        rest = after;
    }
}
