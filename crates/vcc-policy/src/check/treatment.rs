//! A treatment's keys, and what they mean to each other.

use vcc_engine::Mode;

use super::pools::Pools;
use crate::file::TreatmentKeys;
use crate::keys::Surface;
use crate::problem::Findings;
use crate::treatment::Treatment;

/// In a table that could not be read as a whole, what seems to be missing may not be.
pub(super) fn check(
    keys: &TreatmentKeys,
    is_sound: bool,
    pools: &Pools<'_>,
    findings: &mut Findings<'_>,
) -> Treatment {
    let mut treatment = keys.settings.treatment();
    let pool = keys.pool().and_then(|(name, span)| pools.find(name, span, findings));
    if !is_sound {
        return treatment;
    }
    let window_bytes = pool.map(|pool| pools.window_bytes(pool));
    let complaints = keys.settings.complaints(Surface::File, window_bytes);
    for complaint in complaints.into_iter().chain(keys.settings.warnings(Surface::File)) {
        if let Some(span) = keys.span(complaint.key) {
            findings.add(complaint.severity, span, || complaint.message);
        }
    }
    if treatment.mode() == Mode::Enforce && treatment.underlay().controls() {
        treatment.pool = pool;
    }
    if treatment.pool.is_none() {
        treatment.weight = Treatment::default().weight;
    }
    treatment
}
