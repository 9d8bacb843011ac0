//! Pools, and the rules that use them.

use std::collections::{HashMap, HashSet};

use crate::MAX_POOLS;
use crate::file::{PolicyFile, PoolTable};
use crate::nearest::suggestion;
use crate::pool::Pool;
use crate::problem::{Findings, Span};
use crate::text::shortened;
use crate::units::size;

pub(super) struct Pools<'a> {
    pools: Vec<Pool>,
    index: HashMap<&'a str, usize>,
}

/// A smaller window leaves two connections hardly anything to share.
const FEWEST_SEGMENTS: u32 = 10;
/// The payload of an Ethernet segment.
const SEGMENT_BYTES: u32 = 1460;

pub(super) fn check<'a>(file: &'a PolicyFile, findings: &mut Findings<'_>) -> Pools<'a> {
    let mut pools = Pools { pools: Vec::new(), index: HashMap::new() };
    let mut lines = HashMap::new();
    let tables = file.pools.iter().flat_map(|pools| &pools.value);
    for (place, pool) in tables.enumerate() {
        let PoolTable { name, window } = &pool.value;
        if place == MAX_POOLS {
            findings.error_of_all(
                &pool.span,
                format!("too many pools; at most {MAX_POOLS} are possible"),
            );
        }
        if pool.is_sound && name.is_none() {
            findings.error(&pool.span, "`name` is missing: rules refer to a pool by it");
        }
        if pool.is_sound && window.is_none() {
            findings.error(&pool.span, "`window` is missing, like window = \"2M\"");
        }
        let Some(name) = name else { continue };
        let key = name.value.0.as_str();
        if let Some(line) = lines.get(key) {
            findings
                .error(&name.span, format!("the pool in line {line} also has the name `{key}`"));
            continue;
        }
        lines.insert(key, findings.line(&name.span));
        if let Some(window) = window {
            if window.value.0 < FEWEST_SEGMENTS * SEGMENT_BYTES {
                findings.warning(
                    &window.span,
                    format!(
                        "a window of {} holds fewer than {FEWEST_SEGMENTS} segments, and each \
                         connection of the pool gets at least one",
                        size::display(window.value.0)
                    ),
                );
            }
        }
        pools.index.insert(key, pools.pools.len());
        let window_bytes = window.as_ref().map_or(1, |window| window.value.0);
        pools.pools.push(Pool { name: key.to_owned(), window_bytes });
    }
    pools
}

impl Pools<'_> {
    /// The pool of that name, or an error at its place.
    pub fn find(&self, name: &str, span: &Span, findings: &mut Findings<'_>) -> Option<usize> {
        let found = self.index.get(name).copied();
        if found.is_none() {
            // The cost of comparing names grows with their number.
            let known = self.pools.iter().take(MAX_POOLS).map(|pool| pool.name.as_str());
            findings.error_with(span, || {
                format!("no pool has the name `{}`; {}", shortened(name), suggestion(name, known))
            });
        }
        found
    }

    pub fn window_bytes(&self, pool: usize) -> u32 {
        self.pools[pool].window_bytes
    }

    pub fn into_pools(self) -> Vec<Pool> {
        self.pools
    }
}

pub(super) fn check_use(file: &PolicyFile, findings: &mut Findings<'_>) {
    let of_rules = file.rules.iter().flat_map(|rules| &rules.value);
    let of_rules = of_rules.map(|rule| &rule.value.treatment);
    let of_default = file.default.iter().map(|default| &default.value.treatment);
    let used: HashSet<&str> =
        of_rules.chain(of_default).filter_map(|keys| keys.settings.pool()).collect();
    for pool in file.pools.iter().flat_map(|pools| &pools.value) {
        if let Some(name) =
            pool.value.name.as_ref().filter(|name| !used.contains(name.value.0.as_str()))
        {
            findings.warning(&name.span, format!("no rule uses the pool `{}`", name.value.0));
        }
    }
}
