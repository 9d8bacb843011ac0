//! Which nodes try a policy first.

use std::fmt;

/// A share of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// In hundredths of a percent.
    basis_points: u16,
}

impl Share {
    const ALL: u16 = 10_000;

    /// Reads a percentage with at most two decimals, like "10%".
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            let text = vcc_policy::text::shortened(text);
            format!("`{text}` is not a share of the nodes, from \"0%\" to \"100%\"")
        };
        let number = text.strip_suffix('%').ok_or_else(wrong)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || whole.len() > 3
            || !is_number(whole)
            || !is_number(decimals)
            || decimals.len() > 2
            || (number.contains('.') && decimals.is_empty())
        {
            return Err(wrong());
        }
        let hundredths = format!("{whole}{decimals:0<2}");
        let basis_points = hundredths.parse().map_err(|_| wrong())?;
        if basis_points > Self::ALL {
            return Err(wrong());
        }
        Ok(Self { basis_points })
    }

    /// Whether a node is in the share. A node that is in a share is in every larger one too, and all
    /// nodes agree on who is in it.
    pub fn has(self, node: &str) -> bool {
        // The upper 32 bits, as a fraction of 2^32.
        let place = hash(node) >> 32;
        place * u64::from(Self::ALL) < u64::from(self.basis_points) << 32
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.basis_points / 100)?;
        match self.basis_points % 100 {
            0 => {}
            rest if rest % 10 == 0 => write!(f, ".{}", rest / 10)?,
            rest => write!(f, ".{rest:02}")?,
        }
        f.write_str("%")
    }
}

/// FNV-1a, and MurmurHash3's last steps: names that differ in a digit have nothing in common.
fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages() {
        for (text, shown) in [
            ("0%", "0%"),
            ("10%", "10%"),
            ("100%", "100%"),
            ("2.5%", "2.5%"),
            ("0.01%", "0.01%"),
            ("007.50%", "7.5%"),
        ] {
            assert_eq!(Share::parse(text).map(|share| share.to_string()), Ok(shown.to_owned()));
        }
        for text in
            ["", "%", "10", "101%", "100.01%", "-1%", "1.%", ".5%", "1.234%", "1e1%", "10 %"]
        {
            let wrong = Share::parse(text).expect_err(text);
            assert_eq!(
                wrong,
                format!("`{text}` is not a share of the nodes, from \"0%\" to \"100%\"")
            );
        }
    }

    #[test]
    fn a_share_is_about_as_large_as_it_says_and_is_part_of_larger_ones() {
        let nodes: Vec<String> = (0..10_000).map(|number| format!("worker-{number}")).collect();
        let of = |text: &str| {
            let share = Share::parse(text).expect(text);
            nodes.iter().map(|node| share.has(node)).collect::<Vec<bool>>()
        };
        let (one, ten, half) = (of("1%"), of("10%"), of("50%"));
        let count = |members: &[bool]| members.iter().filter(|is_in| **is_in).count();
        // Four standard deviations of a fair draw.
        assert!(count(&one).abs_diff(100) < 40, "{}", count(&one));
        assert!(count(&ten).abs_diff(1000) < 120, "{}", count(&ten));
        assert!(count(&half).abs_diff(5000) < 200, "{}", count(&half));
        assert_eq!(count(&of("100%")), 10_000);
        assert_eq!(count(&of("0%")), 0);
        for at in 0..nodes.len() {
            assert!(one[at] <= ten[at] && ten[at] <= half[at], "{}", nodes[at]);
        }
    }
}
