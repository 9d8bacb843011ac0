//! Links between the pages.

use std::fs;

use super::page::{names, root};

/// The anchor that GitHub makes of a heading: lower case, hyphens for spaces, no other punctuation.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// The link targets of a page, those at other sites excepted.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    links.filter(|target| !target.contains("://"))
}

/// The pages of experiments.
fn results() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs/results")).expect("the pages");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.map(|name| format!("docs/results/{}", name.to_str().expect("UTF-8"))).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let (mut broken, mut count) = (Vec::new(), 0);
    for name in names().into_iter().chain(results()) {
        let page = root().join(&name);
        let text = fs::read_to_string(&page).expect("UTF-8");
        for target in targets(&text) {
            count += 1;
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() {
                page.clone()
            } else {
                page.parent().expect("a folder").join(path)
            };
            let leads = match fs::read_to_string(&file) {
                Ok(text) => heading.is_empty() || anchors(&text).iter().any(|it| it == heading),
                Err(_) => heading.is_empty() && file.exists(),
            };
            if !leads {
                broken.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(count > 50, "links are found: {count}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).expect("UTF-8");
    for name in names() {
        let Some(page) = name.strip_prefix("docs/").filter(|page| *page != "README.md") else {
            continue;
        };
        assert!(
            targets(&index).any(|target| target == page),
            "docs/README.md has no link to {page}"
        );
    }
}
