//! From a file's `vcc` table to how vcc treats a guest.

mod table;

pub use table::{Vcc, VccMode};

use crate::experiment::bounded::Bytes;
use crate::scenario::{PoolShare, Translation};
use std::collections::BTreeMap;
use vcc_domain::BufferSpec;
use vcc_engine::{Act, Params};
use vcc_policy::{Settings, Surface};

/// The field that is wrong, and what it may be.
type Refusal = (&'static str, String);

/// None where vcc is off. `pools` are those of the experiment.
pub fn translation(
    vcc: &Vcc,
    pools: &BTreeMap<String, Bytes>,
) -> Result<Option<Translation>, Refusal> {
    if vcc.mode == VccMode::Off {
        return Ok(None);
    }
    let complaints = vcc.settings.complaints(Surface::File, None);
    if let Some(complaint) = complaints.into_iter().next() {
        return Err((complaint.key.name, complaint.message));
    }
    let params = vcc.settings.treatment().params;
    let buffer = buffer(vcc, &params)?;
    let share = pool_share(&vcc.settings, pools)?;
    if share.is_some() && params != Params::with(|plain| plain.underlay = params.0.underlay) {
        let text = "allows only 'mode = \"enforce\"', 'underlay' and 'weight' beside it";
        return Err(("pool", text.into()));
    }
    Ok(Some(Translation { params, share, buffer }))
}

/// The buffer of a port that holds segments.
fn buffer(vcc: &Vcc, params: &Params) -> Result<BufferSpec, Refusal> {
    let default = BufferSpec::default();
    let holds = params.0.act != Act::Window.number();
    let without = |key, is_set: bool| match is_set && !holds {
        true => {
            let acts = "'act = \"hold\"' or 'act = \"split\"'";
            Err((key, format!("has an effect only with 'mode = \"enforce\"' and {acts}")))
        }
        false => Ok(()),
    };
    without("buffer_kib", vcc.buffer_kib.is_some())?;
    without("buffer_policy", vcc.buffer_policy.is_some())?;
    Ok(BufferSpec {
        size_bytes: vcc.buffer_kib.map_or(default.size_bytes, |kib| kib.get() << 10),
        policy: vcc.buffer_policy.unwrap_or(default.policy),
    })
}

fn pool_share(
    settings: &Settings,
    pools: &BTreeMap<String, Bytes>,
) -> Result<Option<PoolShare>, Refusal> {
    let Some(pool) = settings.pool() else { return Ok(None) };
    let Some(window) = pools.get(pool) else {
        let known: Vec<&str> = pools.keys().map(String::as_str).collect();
        return Err(("pool", format!("there is no pool '{pool}': there are {known:?}")));
    };
    let weight = settings.treatment().weight;
    Ok(Some(PoolShare { pool: pool.to_owned(), window_bytes: window.get(), weight }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(table: &str) -> Refusal {
        let vcc: Vcc = toml::from_str(table).expect("a table");
        translation(&vcc, &BTreeMap::new()).expect_err("a refusal")
    }

    #[test]
    fn keys_without_effect_are_refused_by_their_field() {
        assert_eq!(refused("mode = \"enforce\"\npriority = 0.5").0, "priority");
        assert_eq!(refused("mode = \"shadow\"\npolice = true").0, "police");
        assert_eq!(refused("mode = \"enforce\"\nweight = 2").0, "weight");
        assert_eq!(refused("mode = \"enforce\"\nretransmit = true").0, "retransmit");
        let split = "mode = \"enforce\"\nact = \"split\"\nretransmit = true";
        assert_eq!(refused(split).0, "retransmit");
        assert_eq!(refused("mode = \"shadow\"\nact = \"split\"").0, "act");
        assert_eq!(refused("mode = \"enforce\"\npool = \"p\"").0, "pool");
        assert_eq!(refused("mode = \"shadow\"\nreceive = \"ring\"").0, "receive");
        let off: Vcc = toml::from_str("mode = \"off\"\npriority = 0.5").expect("a table");
        assert!(translation(&off, &BTreeMap::new()).unwrap().is_none());
    }
}
