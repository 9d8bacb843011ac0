use std::fs;
use std::path::Path;

use anyhow::Context;
use clap_mangen::Man;

use crate::markup::marked;

/// Section 8: system administration commands.
const SECTION: &str = "8";

/// Writes a page for the command, and one for each subcommand.
pub fn write(command: clap::Command, directory: &Path) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below.clone(), directory)?;
    }
    let version = command.get_version().unwrap_or_default();
    let page =
        Man::new(command.clone()).section(SECTION).manual("vcc").source(format!("vcc {version}"));
    let mut text = Vec::new();
    page.render(&mut text)?;
    // Requests and escapes of roff have neither code nor links.
    let text = marked(&String::from_utf8(text)?, "\\fB", "\\fR");
    let path = directory.join(page.get_filename());
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
