//! Names that an operator gives to rules, pools and tenants.

/// The size of a name in the datapath's maps, less its NUL.
pub const LONGEST_BYTES: usize = vcc_engine::sys::POLICY_NAME_BYTES as usize - 1;

pub(crate) fn check(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        Err("a name must not be empty".to_owned())
    } else if name.len() > LONGEST_BYTES {
        Err(format!("a name has at most {LONGEST_BYTES} bytes; this one has {}", name.len()))
    } else if name.contains(char::is_control) {
        Err("a name must not contain control characters or line breaks".to_owned())
    } else {
        Ok(())
    }
}
