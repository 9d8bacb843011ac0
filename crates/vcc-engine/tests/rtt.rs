//! RTT and RTO (RFC 6298).

use crate::common::*;
use vcc_engine::{Params, sys};

/// RFC 6298, 2.2 and 2.3, in real numbers.
struct Estimator {
    srtt_us: f64,
    rttvar_us: f64,
}

impl Estimator {
    fn first(rtt_us: f64) -> Self {
        Estimator { srtt_us: rtt_us, rttvar_us: rtt_us / 2.0 }
    }

    fn sample(&mut self, rtt_us: f64) {
        self.rttvar_us = 0.75 * self.rttvar_us + 0.25 * (self.srtt_us - rtt_us).abs();
        self.srtt_us = 0.875 * self.srtt_us + 0.125 * rtt_us;
    }
}

fn round_trip(conn: &mut Conn, number: u32, rtt_us: u64) {
    conn.send_segs(number, number + 1);
    conn.wait_us(rtt_us).peer_ack_segs(number + 1);
    conn.wait_us(10);
}

#[test]
fn the_estimator_is_rfc_6298s() {
    let samples_us = [60_000, 61_000, 40_000, 200_000, 60_000, 60_000, 1, 500, 60_000, 5_000_000];
    for isn in ISNS {
        let mut conn = Conn::established(Params::default(), isn);
        round_trip(&mut conn, 0, 60_000);
        let mut oracle = Estimator::first(60_000.0);
        for (number, rtt_us) in samples_us.into_iter().enumerate() {
            round_trip(&mut conn, number as u32 + 1, rtt_us);
            oracle.sample(rtt_us as f64);
            let srtt_us = f64::from(conn.flow.srtt_us8) / 8.0;
            let rttvar_us = f64::from(conn.flow.rttvar_us4) / 4.0;
            // Truncation costs at most a unit of each per sample.
            assert!((srtt_us - oracle.srtt_us).abs() < 10.0, "srtt {srtt_us}");
            assert!((rttvar_us - oracle.rttvar_us).abs() < 10.0, "rttvar {rttvar_us}");
        }
    }
}

#[test]
fn one_segment_is_timed_at_a_time() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 1);
    conn.wait_us(1000).send_segs(1, 2);
    conn.wait_us(9000).peer_ack_segs(2);
    assert_eq!(conn.flow.srtt_us8 / 8, 10_000, "from the first one's departure");
}

#[test]
fn a_retransmitted_segment_gives_no_sample() {
    // Karn's algorithm: RFC 6298, 3.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 1);
    conn.wait_us(300_000).send_segs(0, 1);
    conn.wait_us(1000).peer_ack_segs(1);
    assert_eq!(conn.flow.srtt_us8, 0);
}

#[test]
fn a_partly_retransmitted_segment_gives_no_sample() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send(0, 500);
    conn.wait_us(300_000).send(0, 1000);
    conn.wait_us(1000).peer_ack(1000);
    assert_eq!(conn.flow.srtt_us8, 0);
}

/// The first deadline at which the flight counts as lost.
fn measured_rto_us(conn: &Conn) -> u64 {
    let (mut low_us, mut high_us) = (0, 100_000_000);
    while high_us - low_us > 1 {
        let middle_us = (low_us + high_us) / 2;
        let mut probe = conn.clone();
        probe.wait_us(middle_us).deadline();
        if u32::from(probe.flow.ca_state) == sys::CA_LOSS {
            high_us = middle_us;
        } else {
            low_us = middle_us;
        }
    }
    high_us
}

#[test]
fn the_initial_rto_is_a_second() {
    // RFC 6298, 2.1.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 1);
    assert_eq!(measured_rto_us(&conn), 1_000_000);
}

#[test]
fn the_rto_has_linuxs_minimum() {
    // SRTT + max(4 * RTTVAR, minimum).
    let mut conn = Conn::established(Params::default(), 5);
    for number in 0..100 {
        round_trip(&mut conn, number, 60_000);
    }
    conn.send_segs(100, 101);
    let rto_us = measured_rto_us(&conn);
    assert!((259_900..=260_100).contains(&rto_us), "{rto_us}");

    let mut conn = Conn::established(params(|p| p.rto_min_us = 1000), 5);
    round_trip(&mut conn, 0, 60_000);
    conn.send_segs(1, 2);
    assert_eq!(measured_rto_us(&conn), 60_000 + 4 * 30_000);
}

#[test]
fn the_rto_doubles_until_progress() {
    // RFC 6298, 5.5 and 2.5.
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 1);
    for doublings in 0..10 {
        let due_us = (1_000_000 << doublings).min(60_000_000);
        conn.wait_us(due_us - 1).deadline();
        let timed_out = conn.flow.progress_us == conn.now_us as u32;
        assert!(!timed_out, "early at {doublings} doublings");
        conn.wait_us(1).deadline();
        assert_eq!(conn.flow.progress_us, conn.now_us as u32, "late at {doublings} doublings");
    }
    conn.send_segs(0, 1);
    conn.peer_ack_segs(1);
    conn.send_segs(1, 2);
    let mut later = conn.clone();
    later.wait_us(1_000_000).deadline();
    assert_eq!(later.flow.progress_us, later.now_us as u32, "progress ends the backoff");
}

#[test]
fn an_ack_restarts_the_retransmission_timer() {
    // RFC 6298, 5.3.
    let mut conn = Conn::established(Params::default(), 5);
    round_trip(&mut conn, 0, 1000);
    conn.send_segs(1, 3);
    conn.wait_us(200_000).peer_ack_segs(2);
    conn.wait_us(200_000).deadline();
    assert_eq!(u32::from(conn.flow.ca_state), sys::CA_OPEN);
}

#[test]
fn a_clock_jump_is_no_sample() {
    let mut conn = Conn::established(Params::default(), 5);
    round_trip(&mut conn, 0, 1000);
    let srtt_us8 = conn.flow.srtt_us8;
    conn.send_segs(1, 2);
    conn.now_us -= 5;
    conn.peer_ack_segs(2);
    assert_eq!(conn.flow.srtt_us8, srtt_us8);
    conn.send_segs(2, 3);
    conn.wait_us(100_000_000).peer_ack_segs(3);
    assert_eq!(conn.flow.srtt_us8, srtt_us8);
}
