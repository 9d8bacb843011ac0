//! CUBIC's growth (RFC 9438), with the RFC's constants, which Linux uses too.

use crate::epochs::Epoch;

/// Segments per second cubed.
const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// CUBIC's growth over this epoch. Fast convergence (RFC 9438, 4.7) makes it less.
pub(crate) fn gain_segs(epoch: &Epoch) -> f64 {
    // K: the time until the window reaches W_max again (4.2, figure 2).
    let k_s = ((epoch.before_segs - epoch.after_segs).max(0.0) / C).cbrt();
    let by_clock = epoch.before_segs + C * (epoch.seconds - k_s).powi(3) - epoch.after_segs;
    // The Reno-friendly region: Reno's average growth with this factor (4.3).
    let as_reno = 3.0 * (1.0 - BETA) / (1.0 + BETA) * epoch.growing_rounds();
    by_clock.max(as_reno)
}
