//! What CUBIC would do (RFC 9438), with the RFC's constants, which are Linux's.

use crate::epochs::Epoch;

/// Segments a second cubed.
const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// By how much it would have grown in this epoch. Fast convergence (RFC 9438, 4.7) makes that less.
pub(crate) fn gain_segs(epoch: &Epoch) -> f64 {
    // 4.2, figure 2: K is when the window is as large again.
    let k_s = ((epoch.before_segs - epoch.after_segs).max(0.0) / C).cbrt();
    let by_clock = epoch.before_segs + C * (epoch.seconds - k_s).powi(3) - epoch.after_segs;
    // 4.3: as Reno with this factor would on the average.
    let as_reno = 3.0 * (1.0 - BETA) / (1.0 + BETA) * epoch.growing_rounds();
    by_clock.max(as_reno)
}
