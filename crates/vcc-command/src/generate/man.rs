use std::path::Path;

use anyhow::Context;
use clap_mangen::Man;

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
    let written = page.generate_to(directory);
    written.with_context(|| format!("cannot write man pages to {}", directory.display()))?;
    Ok(())
}
