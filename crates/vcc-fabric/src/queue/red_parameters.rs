//! From RED's parameters as a person gives them to those that the kernel computes with.
//!
//! This is iproute2's derivation (tc/tc_red.c) followed by the kernel's red_set_parms()
//! (include/net/red.h), with their quirks kept: they decide what a "RED" of a published
//! experiment really did.

/// Kernel clock ticks (64 ns) in a microsecond: tc measures the time of a packet in these, the
/// kernel looks the idle time up in microseconds, so idle decay is slower than Floyd's by this.
const TICKS_PER_US: f64 = 15.625;
const STAB_CELLS: usize = 256;
const MAX_SHIFT: u8 = 31;

/// The arithmetic that one queue works with; averages are scaled by `2^wlog`.
#[derive(Debug, Clone, PartialEq)]
pub struct RedParameters {
    pub wlog: u32,
    pub plog: u32,
    pub scell_log: u32,
    pub stab: [u8; STAB_CELLS],
    pub min_scaled: u64,
    pub max_scaled: u64,
    /// Step of the marking probability, as a divisor of a 32-bit random number.
    pub max_p_delta: u32,
}

/// The parameters of `tc qdisc add ... red`.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    pub min_bytes: u32,
    pub max_bytes: u32,
    pub average_packet_bytes: u32,
    pub burst_packets: u32,
    pub probability: f64,
    pub rate_bps: u64,
}

impl RedParameters {
    pub fn derive(given: &Given) -> Result<Self, String> {
        if given.max_bytes <= given.min_bytes {
            return Err(format!(
                "max_bytes {} is not above min_bytes {}",
                given.max_bytes, given.min_bytes
            ));
        }
        if !(given.probability > 0.0 && given.probability <= 1.0) {
            return Err(format!("probability {} is not within (0, 1]", given.probability));
        }
        if given.average_packet_bytes == 0 {
            return Err("average_packet_bytes is 0".into());
        }
        let delta = given.max_bytes - given.min_bytes;
        let wlog = weight(given)?;
        let plog = probability_log(delta, given.probability)?;
        let (scell_log, stab) = idle_damping(wlog, given)?;
        Ok(Self {
            wlog,
            plog,
            scell_log,
            stab,
            min_scaled: u64::from(given.min_bytes) << wlog,
            max_scaled: u64::from(given.max_bytes) << wlog,
            max_p_delta: (max_p(plog, delta, given.probability) / delta).max(1),
        })
    }
}

/// tc_red_eval_ewma(): the smallest weight that lets a burst of this size pass unmarked.
fn weight(given: &Given) -> Result<u32, String> {
    let min_packets = f64::from(given.min_bytes) / f64::from(given.average_packet_bytes);
    let burst = f64::from(given.burst_packets);
    let allowed = burst + 1.0 - min_packets;
    if allowed < 1.0 {
        return Err(format!(
            "burst_packets {} is too small for min_bytes {}: use at least {}",
            given.burst_packets,
            given.min_bytes,
            1 + given.min_bytes / given.average_packet_bytes
        ));
    }
    (1..32)
        .find(|wlog| {
            let w = 0.5_f64.powi(*wlog);
            allowed <= (1.0 - (1.0 - w).powf(burst)) / w
        })
        .map(|wlog| wlog as u32)
        .ok_or_else(|| format!("burst_packets {} is too large", given.burst_packets))
}

/// tc_red_eval_P(): the power of two that takes the probability of one byte above one.
fn probability_log(delta_bytes: u32, probability: f64) -> Result<u32, String> {
    let per_byte = probability / f64::from(delta_bytes);
    (0..32)
        .find(|plog| per_byte * 2.0_f64.powi(*plog) > 1.0)
        .map(|plog| plog as u32)
        .ok_or_else(|| format!("probability {probability} is too small for {delta_bytes} bytes"))
}

/// tc_red_eval_idle_damping(): how many halvings of the average an idle time is worth.
fn idle_damping(wlog: u32, given: &Given) -> Result<(u32, [u8; STAB_CELLS]), String> {
    let bytes_per_s = given.rate_bps as f64 / 8.0;
    let packet_us = f64::from(given.average_packet_bytes) / bytes_per_s * 1e6;
    let packet_ticks = (packet_us * TICKS_PER_US).ceil();
    let per_tick = -(1.0 - 1.0 / f64::from(1_u32 << wlog)).ln() / packet_ticks;
    let longest = f64::from(MAX_SHIFT) / per_tick;
    let scell_log = (0..32)
        .find(|clog| longest / f64::from(1_u32 << clog) < 512.0)
        .ok_or_else(|| format!("a rate of {} bit/s is too low for RED", given.rate_bps))?;
    let mut stab = [0; STAB_CELLS];
    for (i, cell) in stab.iter_mut().enumerate().take(STAB_CELLS - 1).skip(1) {
        *cell = (((i as u64) << scell_log) as f64 * per_tick).min(f64::from(MAX_SHIFT)) as u8;
    }
    stab[STAB_CELLS - 1] = MAX_SHIFT;
    Ok((scell_log, stab))
}

/// tc sends probability x 2^32 in 32 bits, so that 1.0 arrives as 0, and the kernel then takes
/// the probability from Plog.
fn max_p(plog: u32, delta_bytes: u32, probability: f64) -> u32 {
    match (probability * 4_294_967_296.0) as u64 as u32 {
        0 => (u32::MAX >> plog).wrapping_mul(delta_bytes),
        sent => sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED1: Given = Given {
        min_bytes: 90_000,
        max_bytes: 90_001,
        average_packet_bytes: 1500,
        burst_packets: 61,
        probability: 1.0,
        rate_bps: 10_000_000,
    };
    const RED2: Given = Given {
        min_bytes: 30_000,
        max_bytes: 90_000,
        average_packet_bytes: 1500,
        burst_packets: 55,
        probability: 0.02,
        rate_bps: 10_000_000,
    };

    /// The steps of the damping table: the first index of each further halving.
    fn steps(stab: &[u8; STAB_CELLS]) -> Vec<usize> {
        (1..STAB_CELLS - 1).filter(|&i| stab[i] > stab[i - 1]).collect()
    }

    /// The netlink message of `tc qdisc add ... red ...` (iproute2 6.1) for the same values.
    #[test]
    fn red1_is_what_tc_sends() {
        let red = RedParameters::derive(&RED1).unwrap();
        assert_eq!((red.wlog, red.plog, red.scell_log), (1, 1, 11));
        assert_eq!(
            steps(&red.stab),
            [
                14, 27, 40, 53, 67, 80, 93, 106, 119, 133, 146, 159, 172, 185, 199, 212, 225, 238,
                251
            ]
        );
        assert_eq!((red.stab[254], red.stab[255]), (19, 31));
        assert_eq!((red.min_scaled, red.max_scaled), (180_000, 180_002));
        assert_eq!(red.max_p_delta, u32::MAX >> 1);
    }

    #[test]
    fn red2_and_red3_are_what_tc_sends() {
        let red2 = RedParameters::derive(&RED2).unwrap();
        assert_eq!((red2.wlog, red2.plog, red2.scell_log), (6, 22, 17));
        assert_eq!(steps(&red2.stab)[..4], [10, 19, 28, 37]);
        assert_eq!((red2.stab[254], red2.stab[255]), (27, 31));
        assert_eq!(red2.max_p_delta, 0x051e_b851 / 60_000);

        let red3 = RedParameters::derive(&Given { probability: 1.0, ..RED2 }).unwrap();
        assert_eq!((red3.wlog, red3.plog, red3.scell_log), (6, 16, 17));
        assert_eq!(red3.stab, red2.stab);
        assert_eq!(red3.max_p_delta, (u32::MAX >> 16).wrapping_mul(60_000) / 60_000);
    }

    #[test]
    fn a_tenfold_rate_is_what_tc_sends() {
        let red = RedParameters::derive(&Given { rate_bps: 100_000_000, ..RED1 }).unwrap();
        assert_eq!((red.wlog, red.plog, red.scell_log), (1, 1, 8));
        assert_eq!(steps(&red.stab)[..3], [11, 22, 32]);
    }

    #[test]
    fn refuses_as_tc_does_and_says_what_would_do() {
        let small = RedParameters::derive(&Given { burst_packets: 59, ..RED1 });
        assert!(small.unwrap_err().ends_with("use at least 61"));
        let inverted = RedParameters::derive(&Given { max_bytes: 90_000, ..RED1 });
        assert!(inverted.unwrap_err().contains("not above"));
        let never = RedParameters::derive(&Given { probability: 0.0, ..RED1 });
        assert!(never.unwrap_err().contains("probability"));
    }
}
