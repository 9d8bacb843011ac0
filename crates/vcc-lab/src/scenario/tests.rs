use super::made::scenario;

/// Headers of IPv4 and of TCP with timestamps are no payload, nor is Ethernet's.
#[test]
fn what_full_frames_bring_depends_on_the_mtu() {
    let share = |mtu_bytes| {
        let mut scenario = scenario();
        scenario.network.mtu_bytes = mtu_bytes;
        scenario.goodput_ceiling_bps() / scenario.network.rate_bps as f64
    };
    assert!((share(1500) - 1448.0 / 1514.0).abs() < 1e-9);
    assert!((share(9000) - 8948.0 / 9014.0).abs() < 1e-9);
}
