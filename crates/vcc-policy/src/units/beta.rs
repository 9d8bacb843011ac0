//! How much a connection counts beside others, under `dctcp-priority`.

use std::str::FromStr;

use vcc_engine::sys;

/// AC/DC's beta: at 1 marks cut a window by alpha / 2, as DCTCP does; at 0 by all of alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beta(u16);

impl Beta {
    pub fn in_1024ths(self) -> u16 {
        self.0
    }
}

impl TryFrom<f64> for Beta {
    type Error = String;

    fn try_from(beta: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&beta) {
            Ok(Self((beta * f64::from(sys::BETA_ONE)).round() as u16))
        } else {
            Err("must be a number from 0 to 1".to_owned())
        }
    }
}

impl FromStr for Beta {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.parse::<f64>().unwrap_or(f64::NAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_from_0_to_1() {
        for (text, expected) in [("0", 0), ("0.5", 512), ("1", 1024), ("1.0", 1024), ("0.001", 1)] {
            assert_eq!(text.parse::<Beta>().map(Beta::in_1024ths), Ok(expected), "{text}");
        }
        for bad in ["", "half", "-0.1", "1.01", "nan", "inf"] {
            assert!(bad.parse::<Beta>().is_err(), "{bad}");
        }
    }
}
