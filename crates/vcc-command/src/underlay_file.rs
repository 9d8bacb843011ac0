//! Underlays in files that `vcc underlay build` has made.

use std::path::Path;

use anyhow::anyhow;
use vcc_engine::Underlay;
use vcc_port::Underlays;
use vcc_underlay::Object;

/// Lets this process alone run the underlay in a file.
pub fn use_here(file: &Path) -> anyhow::Result<Underlay> {
    Ok(Underlays::use_here(&read(file)?)?)
}

pub fn read(file: &Path) -> anyhow::Result<Object> {
    Object::read(file).map_err(|e| anyhow!("{} {e}", file.display()))
}
