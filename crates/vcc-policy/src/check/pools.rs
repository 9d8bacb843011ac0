//! Pools, and who uses them.

use std::collections::{HashMap, HashSet};

use vcc_engine::PoolShare;

use crate::MAX_POOLS;
use crate::file::{PolicyFile, PoolTable, TreatmentKeys};
use crate::nearest::suggestion;
use crate::pool::Pool;
use crate::problem::{Findings, Span};
use crate::text::shortened;
use crate::units::size;

pub(super) struct Pools<'a> {
    pools: Vec<Pool>,
    index: HashMap<&'a str, usize>,
}

/// Less than that leaves two connections hardly anything to share.
const FEWEST_SEGMENTS: u32 = 10;
/// Of an Ethernet segment.
const SEGMENT_BYTES: u32 = 1460;

pub(super) fn check<'a>(file: &'a PolicyFile, findings: &mut Findings<'_>) -> Pools<'a> {
    let mut pools = Pools { pools: Vec::new(), index: HashMap::new() };
    let mut lines = HashMap::new();
    let tables = file.pools.iter().flat_map(|pools| &pools.value);
    for (place, pool) in tables.enumerate() {
        let PoolTable { name, window } = &pool.value;
        if place == MAX_POOLS {
            findings.error(&pool.span, format!("too many pools: there can be {MAX_POOLS}"));
        }
        if pool.is_sound && name.is_none() {
            findings.error(&pool.span, "a pool needs a `name`, for rules to refer to it");
        }
        if pool.is_sound && window.is_none() {
            findings.error(&pool.span, "a pool needs a `window`, like window = \"2M\"");
        }
        let Some(name) = name else { continue };
        let key = name.value.0.as_str();
        if let Some(line) = lines.get(key) {
            findings.error(&name.span, format!("the pool in line {line} is called `{key}` too"));
            continue;
        }
        lines.insert(key, findings.line(&name.span));
        if let Some(window) = window {
            if window.value.0.get() < FEWEST_SEGMENTS * SEGMENT_BYTES {
                findings.warning(
                    &window.span,
                    format!(
                        "a pool of {} holds fewer than {FEWEST_SEGMENTS} segments; each of its \
                         connections gets one at least, whatever the pool holds",
                        size::display(window.value.0.get())
                    ),
                );
            }
        }
        pools.index.insert(key, pools.pools.len());
        let window_bytes = window.as_ref().map_or(1, |window| window.value.0.get());
        pools.pools.push(Pool { name: key.to_owned(), window_bytes });
    }
    pools
}

impl Pools<'_> {
    /// The pool of that name; it is an error to ask for one that is not there.
    pub fn find(&self, name: &str, span: &Span, findings: &mut Findings<'_>) -> Option<usize> {
        let found = self.index.get(name).copied();
        if found.is_none() {
            // Comparing names takes a while.
            let known = self.pools.iter().take(MAX_POOLS).map(|pool| pool.name.as_str());
            findings.error_with(span, || {
                format!("no pool is called `{}`: {}", shortened(name), suggestion(name, known))
            });
        }
        found
    }

    pub fn window_bytes(&self, share: &PoolShare) -> u32 {
        self.pools[share.pool].window_bytes
    }

    pub fn into_pools(self) -> Vec<Pool> {
        self.pools
    }
}

pub(super) fn check_use(file: &PolicyFile, findings: &mut Findings<'_>) {
    let of_rules = file.rules.iter().flat_map(|rules| &rules.value);
    let of_rules = of_rules.map(|rule| &rule.value.treatment);
    let of_default = file.default.iter().map(|default| &default.value.treatment);
    let pool_of = |keys: &'_ TreatmentKeys| keys.pool.as_ref().map(|pool| pool.value.0.clone());
    let used: HashSet<String> = of_rules.chain(of_default).filter_map(pool_of).collect();
    for pool in file.pools.iter().flat_map(|pools| &pools.value) {
        if let Some(name) = pool.value.name.as_ref().filter(|name| !used.contains(&name.value.0)) {
            findings.warning(&name.span, format!("no rule uses the pool `{}`", name.value.0));
        }
    }
}
