//! From a file's `vcc` table to how vcc treats a guest.

use super::file::{Bytes, PoolWeight, Vcc, VccMode};
use crate::scenario::{PoolShare, Translation};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU32;
use vcc_engine::{Mode, Treatment};

/// The field that is wrong, and what it may be.
type Refusal = (&'static str, String);

/// None where vcc is off. `pools` are those of the experiment.
pub fn translation(
    vcc: &Vcc,
    pools: &BTreeMap<String, Bytes>,
) -> Result<Option<Translation>, Refusal> {
    let mode = match vcc.mode {
        VccMode::Off => return Ok(None),
        VccMode::Enforce => Mode::Enforce,
        VccMode::Shadow => Mode::Shadow,
    };
    let treatment = treatment(vcc, mode)?;
    let share = pool_share(vcc.pool.as_ref(), vcc.weight, pools)?;
    let plain = Treatment { underlay: treatment.underlay, ..Treatment::default() };
    if share.is_some() && treatment != plain {
        let text = "allows only 'mode = \"enforce\"', 'underlay' and 'weight' beside it";
        return Err(("pool", text.into()));
    }
    Ok(Some(Translation { treatment, share }))
}

fn treatment(vcc: &Vcc, mode: Mode) -> Result<Treatment, Refusal> {
    let mut treatment = Treatment { mode, ..Treatment::default() };
    if let Some(name) = &vcc.underlay {
        treatment.underlay = name.parse().map_err(refusal("underlay"))?;
    }
    if let Some(name) = &vcc.guest_ecn {
        treatment.guest_ecn = name.parse().map_err(refusal("guest_ecn"))?;
    }
    treatment.prr = vcc.prr.unwrap_or(treatment.prr);
    treatment.undo = vcc.undo.unwrap_or(treatment.undo);
    treatment.pace_push = vcc.pace_push.unwrap_or(treatment.pace_push);
    if let Some(segs) = vcc.floor_segs {
        treatment.window_floor_segs = segs.get();
    }
    treatment.police = vcc.police.unwrap_or(treatment.police);
    treatment.feedback = vcc.feedback.unwrap_or(treatment.feedback);
    if let Some(beta) = vcc.beta {
        treatment.beta_1024 = (beta.get() * 1024.0).round() as u16;
    }
    treatment.cap_bytes = vcc.cap_bytes.and_then(|cap| NonZeroU32::new(cap.get()));
    if let Some(cap_mbps) = vcc.cap_mbps {
        // 125 bytes a millisecond are a megabit a second.
        treatment.cap_bytes_per_ms = NonZeroU32::new((cap_mbps.get() * 125.0).round() as u32);
    }
    Ok(treatment)
}

fn refusal<E: Display>(field: &'static str) -> impl Fn(E) -> Refusal {
    move |error| (field, error.to_string())
}

fn pool_share(
    pool: Option<&String>,
    weight: Option<PoolWeight>,
    pools: &BTreeMap<String, Bytes>,
) -> Result<Option<PoolShare>, Refusal> {
    let Some(pool) = pool else {
        return match weight {
            Some(_) => Err(("weight", "needs 'pool' beside it".into())),
            None => Ok(None),
        };
    };
    let Some(window) = pools.get(pool) else {
        let known: Vec<&str> = pools.keys().map(String::as_str).collect();
        return Err(("pool", format!("there is no pool '{pool}': there are {known:?}")));
    };
    let weight = weight.map_or(1, PoolWeight::get);
    Ok(Some(PoolShare { pool: pool.clone(), window_bytes: window.get(), weight }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vcc_does_not_have_is_refused_by_its_field() {
        let vcc = |mode| Vcc { mode, underlay: Some("none".into()), ..Vcc::default() };
        assert!(translation(&vcc(VccMode::Off), &BTreeMap::new()).unwrap().is_none());
        let (field, text) = translation(&vcc(VccMode::Enforce), &BTreeMap::new()).unwrap_err();
        assert_eq!(field, "underlay");
        assert!(text.contains("'none'") && text.contains("reno-ecn"), "{text}");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_field() {
        let pools = BTreeMap::new();
        assert_eq!(pool_share(Some(&"p".into()), None, &pools).unwrap_err().0, "pool");
        assert!(pool_share(None, None, &pools).unwrap().is_none());
    }
}
