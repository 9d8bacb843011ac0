//! Pools: connections that share a window by weight (`engine/pool.h`, `engine/hold_pool.h`). Those of one port
//! are its own.

use vcc_engine::{FlowState, Hold, Params, Pool, Segment, sys};

/// How much a pool is used.
pub type PoolTotals = sys::vcc_pool;

/// A pool, and how much it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUse {
    pub name: String,
    /// None: it is not the policy's any more, but connections hold something of it.
    pub window_bytes: Option<u32>,
    pub totals: PoolTotals,
}

#[derive(Clone)]
struct Account {
    name: String,
    pool: Pool,
}

/// What a connection has of a pool, if it has something of one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Member {
    number: u16,
    weight: u16,
    charged_bytes: u32,
}

impl Member {
    /// Has the connection something of a pool?
    pub(crate) fn is_any(flow: &FlowState) -> bool {
        u32::from(flow.shell) & sys::SHELL_POOL != 0
    }
}

/// The pools of the policy in force, and those before it of which connections hold something.
#[derive(Clone, Default)]
pub(crate) struct Pools(Vec<Account>);

impl Pools {
    /// The numbers of the pools of a policy. A name that exists keeps its number, and what its connections hold; a
    /// new one has a number of which no connection holds anything, and which no rule `before` has: handshakes end
    /// under those.
    pub(crate) fn number<'a>(
        &mut self,
        names: &[String],
        before: impl Iterator<Item = &'a Params>,
    ) -> Vec<u16> {
        let named: Vec<usize> =
            before.filter(|it| it.0.pool_weight != 0).map(|it| it.0.pool.into()).collect();
        let mut taken: Vec<Option<usize>> =
            names.iter().map(|name| self.0.iter().position(|it| it.name == *name)).collect();
        for (at, name) in names.iter().enumerate() {
            if taken[at].is_some() {
                continue;
            }
            let is_free = |place: &usize| {
                !is_used(&self.0[*place].pool.0)
                    && !taken.contains(&Some(*place))
                    && !named.contains(place)
            };
            let account = Account { name: name.clone(), pool: Pool::default() };
            let place = (0..self.0.len()).find(is_free).unwrap_or(self.0.len());
            match self.0.get_mut(place) {
                Some(free) => *free = account,
                None => self.0.push(account),
            }
            taken[at] = Some(place);
        }
        taken.into_iter().flatten().map(|place| place as u16).collect()
    }

    /// Before the engine judges a segment. Returns the segment with the connection's limit; None if it is in no
    /// pool. [`Pools::exit`] must follow.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        (flow, hold): (&mut FlowState, &Hold),
        member: &mut Member,
        params: &Params,
        to_guest: bool,
        segment: &Segment,
    ) -> Option<Segment> {
        if params.0.pool_weight == 0 {
            return None;
        }
        let pool = &mut self.0.get_mut(usize::from(params.0.pool))?.pool;
        let mut limited = *segment;
        pool.hold_begin(flow, hold, params, to_guest, &mut limited, &mut member.charged_bytes);
        (member.number, member.weight) = (params.0.pool, params.0.pool_weight);
        Some(limited)
    }

    /// After the engine has judged the segment.
    #[inline]
    pub(crate) fn exit(
        &mut self,
        (flow, hold): (&mut FlowState, &Hold),
        member: &mut Member,
        params: &Params,
        limited: &Segment,
    ) {
        if let Some(Account { pool, .. }) = self.0.get_mut(usize::from(params.0.pool)) {
            pool.hold_end(flow, hold, params, limited, &mut member.charged_bytes);
        }
    }

    /// On a deadline: a silent connection is idle. Is it still in its pool, so that it has another deadline?
    pub(crate) fn rest(
        &mut self,
        (flow, hold): (&mut FlowState, &Hold),
        member: &mut Member,
        params: &Params,
        now_ms: u32,
    ) -> bool {
        if let Some(pool) = self.pool_of(flow, member) {
            pool.hold_idle(flow, hold, params, now_ms, &mut member.charged_bytes);
        }
        u32::from(flow.shell) & sys::SHELL_POOL_MEMBER != 0
    }

    /// The connection comes under other rules. It stays in its pool if that is the same, with the same weight.
    pub(crate) fn judge_anew(
        &mut self,
        (flow, hold): (&mut FlowState, &Hold),
        member: &mut Member,
        params: &Params,
    ) {
        if (member.number, member.weight) != (params.0.pool, params.0.pool_weight) {
            self.leave(flow, member);
        } else if let Some(pool) = self.pool_of(flow, member) {
            pool.hold_settle(flow, hold, params, &mut member.charged_bytes);
        }
    }

    /// The connection comes from another host, with what its guest may send.
    pub(crate) fn arrive(
        &mut self,
        (flow, hold): (&mut FlowState, &Hold),
        params: &Params,
    ) -> Member {
        let mut member =
            Member { number: params.0.pool, weight: params.0.pool_weight, charged_bytes: 0 };
        if let Some(Account { pool, .. }) = self.0.get_mut(usize::from(member.number)) {
            pool.hold_arrive(flow, hold, params, &mut member.charged_bytes);
        }
        member
    }

    /// The connection ends, or is in no pool any more.
    pub(crate) fn leave(&mut self, flow: &mut FlowState, member: &Member) {
        if let Some(pool) = self.pool_of(flow, member) {
            pool.hold_leave(flow, member.charged_bytes, member.weight);
        }
    }

    fn pool_of(&mut self, flow: &FlowState, member: &Member) -> Option<&mut Pool> {
        if !Member::is_any(flow) {
            return None;
        }
        self.0.get_mut(usize::from(member.number)).map(|account| &mut account.pool)
    }

    /// Those of the rules in force, which have these parameters, and others that are used.
    pub(crate) fn uses(&self, rules: &[&Params]) -> impl Iterator<Item = PoolUse> {
        let uses = self.0.iter().enumerate().map(move |(number, Account { name, pool })| {
            let is_its = |it: &&&Params| it.0.pool_weight != 0 && usize::from(it.0.pool) == number;
            let window_bytes = rules.iter().find(is_its).map(|it| it.0.pool_bytes);
            PoolUse { name: name.clone(), window_bytes, totals: pool.0 }
        });
        uses.filter(|it| it.window_bytes.is_some() || is_used(&it.totals))
    }

    /// Is each account the sum of what its members were charged, and no more than it ever held?
    pub(crate) fn add_up<'a>(
        &self,
        flows: impl Iterator<Item = (&'a FlowState, &'a Member)>,
    ) -> bool {
        let mut sums = vec![[0u32; 3]; self.0.len()];
        for (flow, Member { number, weight, charged_bytes }) in flows {
            let Some([held_bytes, idle_bytes, active]) = sums.get_mut(usize::from(*number)) else {
                continue;
            };
            let has = |flag: u32| u32::from(u32::from(flow.shell) & flag != 0);
            *held_bytes += has(sys::SHELL_POOL_MEMBER) * charged_bytes;
            *idle_bytes += has(sys::SHELL_POOL_IDLE) * charged_bytes;
            *active += has(sys::SHELL_POOL_ACTIVE) * u32::from(*weight);
        }
        let all = self.0.iter().map(|Account { pool, .. }| pool.0);
        all.zip(sums).all(|(pool, sums)| {
            [pool.held_bytes, pool.idle_bytes, pool.weight] == sums
                && pool.held_bytes <= pool.most_held_bytes
        })
    }
}

fn is_used(pool: &PoolTotals) -> bool {
    pool.held_bytes != 0 || pool.idle_bytes != 0 || pool.weight != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_its_number_while_it_keeps_its_name_or_is_used_or_named() {
        let mut pools = Pools::default();
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let in_pool = |pool| Params::with(|it| (it.pool, it.pool_weight) = (pool, 1));
        assert_eq!(pools.number(&names(&["a", "b"]), [].iter()), [0, 1]);
        pools.0[0].pool.0.held_bytes = 1;
        pools.0[1].pool.0.most_held_bytes = 7;
        assert_eq!(pools.number(&names(&["c", "b"]), [in_pool(0)].iter()), [2, 1]);
        assert_eq!(pools.0[1].pool.0.most_held_bytes, 7);
        let before = [in_pool(2), Params::with(|it| it.pool = 1)];
        assert_eq!(pools.number(&names(&["d", "a"]), before.iter()), [1, 0]);
        assert_eq!((pools.0[1].pool.0.most_held_bytes, pools.0[0].pool.0.held_bytes), (0, 1));
        let params = Params::with(|it| (it.pool, it.pool_weight, it.pool_bytes) = (1, 3, 5));
        let uses = pools.uses(&[&Params::default(), &params]).collect::<Vec<_>>();
        let uses: Vec<_> = uses.iter().map(|it| (&*it.name, it.window_bytes)).collect();
        assert_eq!(uses, [("a", None), ("d", Some(5))]);
    }
}
