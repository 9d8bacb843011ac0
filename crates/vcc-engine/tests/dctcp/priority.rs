//! Priorities (AC/DC, equation 1).

use super::*;

#[test]
fn priority_follows_equation_1() {
    // AC/DC, 3.4: rwnd * (1 - (alpha - alpha * beta / 2)).
    for (beta_1024, beta) in [(0u16, 0.0), (256, 0.25), (512, 0.5), (768, 0.75), (1024, 1.0)] {
        for alpha in [0u32, 1, 100, 512, 700, 1024] {
            for cwnd in [1u32, 2, 7, 10, 100, 700] {
                let mut params = without_prr("dctcp-priority");
                params.0.beta_1024 = beta_1024;
                params.0.initial_window_segs = cwnd;
                let mut conn = conn(params, 5, Reporting::Reports);
                let mss_bytes = conn.mss();
                conn.send_segs(0, cwnd);
                // Within a window, so that the marks do not change alpha yet.
                conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = alpha;
                conn.flow.0.cc.own[sys::DCTCP_WINDOW_END as usize] = conn.flow.snd_nxt + 1;
                conn.guest_gets(conn.ack(mss_bytes).pack(1, mss_bytes));
                assert_eq!(conn.flow.reductions, 1);
                let share = f64::from(alpha) / 1024.0;
                let left = f64::from(cwnd) * (1.0 - (share - share * beta / 2.0));
                let error = f64::from(conn.flow.cc.ssthresh_segs) - left.max(1.0);
                // Windows are whole segments, rounded to nearest from two on.
                let bounds = if cwnd <= 2 { -0.5..0.501 } else { -1e-9..1.0 };
                assert!(
                    bounds.contains(&error),
                    "beta {beta}, alpha {alpha}, cwnd {cwnd}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_priority_of_one_is_dctcp() {
    for seed in 0..60 {
        compare(without_prr("dctcp-priority"), Reporting::Reports, seed, &mut Model::linux(1));
        // Values above 1 count as 1.
        let mut params = without_prr("dctcp-priority");
        params.0.beta_1024 = u16::MAX;
        compare(params, Reporting::Reports, seed, &mut Model::linux(1));
    }
}

#[test]
fn a_lower_priority_has_smaller_windows() {
    let left = |beta_1024: u64| {
        let mut params = without_prr("dctcp-priority");
        params.0.beta_1024 = beta_1024 as u16;
        let mut cwnds = 0;
        for seed in 0..20 {
            let cut = move |cwnd, alpha| cut(cwnd, alpha * (2048 - beta_1024));
            cwnds += compare(params, Reporting::Reports, seed, &mut Model::new(1, cut));
        }
        cwnds
    };
    let left = [0, 256, 512, 768, 1024].map(left);
    assert!(left.is_sorted() && left[0] < left[4], "{left:?}");
}
