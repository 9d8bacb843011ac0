//! Comparing the state of flows.

use vcc_engine::FlowState;

/// The bytes of a state, for comparison.
pub fn bytes(state: &FlowState) -> &[u8] {
    // SAFETY: pointer and length are those of the value, a C struct of integers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(state).cast(), size_of_val(state)) }
}

macro_rules! fields {
    ($state:expr, $($field:ident),* $(,)?) => {
        vec![
            ("cwnd_segs", u64::from($state.cc.cwnd_segs)),
            ("ssthresh_segs", u64::from($state.cc.ssthresh_segs)),
            ("credit_bytes", u64::from($state.cc.credit_bytes)),
            ("own[0]", u64::from($state.cc.own[0])),
            ("own[1]", u64::from($state.cc.own[1])),
            ("own[2]", u64::from($state.cc.own[2])),
            ("own[3]", u64::from($state.cc.own[3])),
            ("path.rtt_us", u64::from($state.cc.path.rtt_us)),
            ("path.rtt_min_us", u64::from($state.cc.path.rtt_min_us)),
            ("path.rtt_least_us", u64::from($state.cc.path.rtt_least_us)),
            ("path.least_since_us", u64::from($state.cc.path.least_since_us)),
            ("path.rate_bytes_per_ms", u64::from($state.cc.path.rate_bytes_per_ms)),
            ("path.target_us", u64::from($state.cc.path.target_us)),
            ("floor_segs", u64::from($state.cc.floor_segs)),
            ("part_1024", $state.cc.part_1024 as u64),
            ("heard.ect0_bytes", u64::from($state.heard.ect0_bytes)),
            ("heard.ce_bytes", u64::from($state.heard.ce_bytes)),
            ("counted.ect0_bytes", u64::from($state.counted.ect0_bytes)),
            ("counted.ce_bytes", u64::from($state.counted.ce_bytes)),
            $((stringify!($field), u64::from($state.$field)),)*
        ]
    };
}

fn fields(state: &FlowState) -> Vec<(&'static str, u64)> {
    fields!(
        state,
        snd_una,
        snd_nxt,
        right_edge,
        recover,
        rcv_nxt,
        rcv_max,
        prr_prior_segs,
        prr_delivered_bytes,
        prr_out_bytes,
        flight_max_bytes,
        round_end,
        srtt_us8,
        rttvar_us4,
        rtt_seq,
        rtt_sent_us,
        progress_us,
        last_seen_ms,
        flags,
        peer_sends,
        asked,
        asked_us,
        asked_seq,
        sends,
        late_seq,
        fills,
        rcv_rtt,
        rcv_tsval,
        rcv_sent_us,
        rcv_mss_bytes,
        guest_us64,
        guest_worst_us,
        fabric_us64,
        fabric_worst_us,
        rtt_una,
        needless,
        waits,
        marks,
        reductions,
        retransmissions,
        drops,
        guest_cwrs,
        mss_bytes,
        segs_since_ack,
        window_shown,
        window_received,
        stage,
        ca_state,
        underlay,
        dupacks,
        wscale_peer,
        wscale_shown,
        rto_backoff,
        unreported_bytes,
        feedback_ack,
        uncounted_bytes,
        shell,
        overdraft_until,
        overdraft_bytes,
        policed,
        forged,
        mss_max_bytes,
        short_run,
        short_bytes,
        short_end,
        undo_prior_segs,
        undo_bytes,
        undo_from,
        undo_to,
        undo_us,
        resent,
        resent_end,
        resent_bytes,
        used_max_bytes,
        validated_us,
        sent_us,
    )
}

/// The fields in which two states differ, for messages.
pub fn differences(kernel: &FlowState, native: &FlowState) -> String {
    let differing: Vec<String> = fields(kernel)
        .into_iter()
        .zip(fields(native))
        .filter(|(kernel, native)| kernel != native)
        .map(|((name, kernel), (_, native))| format!("{name}: {kernel:#x} not {native:#x}"))
        .collect();
    format!("(kernel, not native) {}", differing.join(", "))
}
