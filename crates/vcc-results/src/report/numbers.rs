//! Numbers as reports write them.

use crate::result::Reach;

/// Four significant digits, as far as they are digits after the point.
pub(super) fn number(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        _ if magnitude >= 1000.0 || magnitude == 0.0 => 0,
        _ if magnitude >= 100.0 => 1,
        _ if magnitude >= 10.0 => 2,
        _ if magnitude >= 0.1 => 3,
        _ => 5,
    };
    format!("{value:.decimals$}")
}

/// In percent, rounded down: no certainty is added by rounding.
pub(super) fn certainty(reach: &Reach) -> String {
    format!("{:.0} %", (reach.certainty * 100.0).floor())
}

pub(super) fn reach(reach: &Reach) -> String {
    format!("{} to {} ({})", number(reach.low), number(reach.high), certainty(reach))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_what_matters() {
        let shown = [0.0, 0.000_25, 0.094_4, 0.992_1, 23.456, 234.56, 68_515.3].map(number);
        assert_eq!(shown, ["0", "0.00025", "0.09440", "0.992", "23.46", "234.6", "68515"]);
    }
}
