//! Writes the generated parts of docs/ anew: `cargo run -p vcc-policy --example docs`.

use std::path::Path;
use std::{fs, io};

use vcc_policy::docs;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(root.join("docs/policy.schema.json"), vcc_policy::schema())?;
    for (page, name, part) in [
        ("docs/policy.md", "keys", docs::keys()),
        ("docs/congestion-control.md", "underlays", docs::underlays()),
    ] {
        let path = root.join(page);
        let text = fs::read_to_string(&path)?;
        let replaced = docs::replaced(&text, name, &part).ok_or_else(|| {
            io::Error::other(format!("{page} has no markers <!-- {name} --> and its end"))
        })?;
        fs::write(path, replaced)?;
    }
    Ok(())
}
