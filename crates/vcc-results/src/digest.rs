//! A short digest of text.

/// FNV-1a, which no version of Rust changes. It finds changes, not forgeries.
pub struct Digest(u64);

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

impl Default for Digest {
    /// Of no line.
    fn default() -> Self {
        Self(BASIS)
    }
}

impl Digest {
    /// Adds a line.
    pub fn add(&mut self, line: &str) {
        for byte in line.bytes().chain([b'\n']) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// 12 hexadecimal digits.
    pub fn text(&self) -> String {
        // With the upper 16 bits folded in.
        format!("{:012x}", (self.0 ^ (self.0 >> 48)) & 0xffff_ffff_ffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_each_line_and_on_their_order() {
        let of = |lines: &[&str]| {
            let mut digest = Digest::default();
            lines.iter().for_each(|line| digest.add(line));
            digest.text()
        };
        let all = [of(&[]), of(&[""]), of(&["a", "b"]), of(&["b", "a"]), of(&["ab"]), of(&["a"])];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.len(), 12, "{one}");
            assert!(!all[..at].contains(one), "{all:?}");
        }
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
    }
}
