//! A port's status, as bytes for another process on this machine, which reads ports like those in
//! the kernel.

use vcc_engine::{Delays, FlowState, Params, sys};

use crate::bytes::{self, BadBytes, read, read_text, write, write_text};
use crate::flow_view::{BufferShare, Seen};
use crate::pools::PoolUse;
use crate::port::Port;
use crate::rules::{Rule, RuleTotals};
use vcc_engine::FlowKey;

/// A port, as of the time when it was asked.
#[derive(Clone)]
pub struct Status {
    /// The path of the socket of the guest's card; empty in front of a device.
    pub socket: String,
    /// The path of its policy; empty without one.
    pub policy: String,
    /// The process that the guest's card is connected to, by its id; 0: none is.
    pub front_end: u32,
    /// Whether the guest's congestion control follows its channel: `up` or `down`; empty without one.
    pub channel: String,
    /// Messages on the channel that were none.
    pub channel_malformed: u64,
    /// The treatment of all connections, unless there are rules.
    pub params: Params,
    pub max_flows: u32,
    /// Bytes that its buffer keeps.
    pub held_bytes: u32,
    /// Why it promises nothing, even if its treatment does; empty if its treatment decides.
    pub unpromised: String,
    /// By reason, in the order of `enum vcc_count`.
    pub counts: Vec<u64>,
    pub delays: Delays,
    /// How often rules came into force; 0: there are none.
    pub epoch: u32,
    pub rules: Vec<(Rule, RuleTotals)>,
    /// Of handshakes that began before.
    pub last_rules: Vec<(Rule, RuleTotals)>,
    pub pools: Vec<PoolUse>,
    pub flows: Vec<Seen>,
}

fn write_rules(rules: &[(Rule, RuleTotals)], bytes: &mut Vec<u8>) {
    write(&(rules.len() as u32), bytes);
    for (rule, totals) in rules {
        write_text(&rule.name, bytes);
        write(&rule.params.0, bytes);
        write(totals, bytes);
    }
}

fn read_rules(bytes: &mut &[u8]) -> Result<Vec<(Rule, RuleTotals)>, BadBytes> {
    let count = read::<u32>(bytes)?;
    let mut rule = || {
        let (name, params) = (read_text(bytes)?, Params(read(bytes)?));
        Ok((Rule { name, params }, read(bytes)?))
    };
    (0..count).map(|_| rule()).collect()
}

fn write_pools(pools: &[PoolUse], bytes: &mut Vec<u8>) {
    write(&(pools.len() as u32), bytes);
    for PoolUse { name, window_bytes, totals } in pools {
        write_text(name, bytes);
        // No window is 0.
        write(&window_bytes.unwrap_or(0), bytes);
        write(totals, bytes);
    }
}

fn read_pools(bytes: &mut &[u8]) -> Result<Vec<PoolUse>, BadBytes> {
    let count = read::<u32>(bytes)?;
    let mut pool = || {
        let (name, window_bytes) = (read_text(bytes)?, read(bytes)?);
        let window_bytes = Some(window_bytes).filter(|it| *it != 0);
        Ok(PoolUse { name, window_bytes, totals: read(bytes)? })
    };
    (0..count).map(|_| pool()).collect()
}

impl Status {
    /// With all flows, or this one. `socket` and `policy` are paths.
    pub fn new(
        port: &Port,
        socket: &str,
        policy: &str,
        front_end: u32,
        flow: Option<FlowKey>,
    ) -> Self {
        let owned = |(rule, totals): (&Rule, &RuleTotals)| (rule.clone(), *totals);
        Status {
            socket: socket.to_owned(),
            policy: policy.to_owned(),
            front_end,
            channel: String::new(),
            channel_malformed: 0,
            params: *port.params(),
            max_flows: port.max_flows() as u32,
            held_bytes: port.held_bytes(),
            unpromised: port.why_nothing_is_promised().unwrap_or_default().to_owned(),
            counts: port.counters().iter().map(|(_, count)| count).collect(),
            delays: *port.delays(),
            epoch: port.epoch(),
            rules: port.rules().map(owned).collect(),
            last_rules: port.last_rules().map(owned).collect(),
            pools: port.pools(),
            flows: match flow {
                Some(key) => port.seen_of(&key).into_iter().collect(),
                None => port.seen().collect(),
            },
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = bytes::begin();
        write_text(&self.socket, &mut bytes);
        write_text(&self.policy, &mut bytes);
        write(&self.front_end, &mut bytes);
        write_text(&self.channel, &mut bytes);
        write(&self.channel_malformed, &mut bytes);
        write(&self.params.0, &mut bytes);
        write(&self.max_flows, &mut bytes);
        write(&self.held_bytes, &mut bytes);
        write_text(&self.unpromised, &mut bytes);
        self.counts.iter().for_each(|count| write(count, &mut bytes));
        write(&self.delays.0, &mut bytes);
        write(&self.epoch, &mut bytes);
        write_rules(&self.rules, &mut bytes);
        write_rules(&self.last_rules, &mut bytes);
        write_pools(&self.pools, &mut bytes);
        write(&(self.flows.len() as u32), &mut bytes);
        for Seen { key, state, share, promised_bytes } in &self.flows {
            write(key.as_raw(), &mut bytes);
            write(&state.0, &mut bytes);
            let BufferShare {
                held_bytes,
                granted_bytes,
                share_bytes,
                leaving_bytes,
                state,
                no_buffer,
                packet_loss,
            } = share;
            for number in [held_bytes, granted_bytes, share_bytes, leaving_bytes, no_buffer] {
                write(number, &mut bytes);
            }
            for number in [packet_loss, state, promised_bytes] {
                write(number, &mut bytes);
            }
        }
        bytes
    }

    /// # Errors
    /// Another version of vcc wrote them, or they are not all there.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, BadBytes> {
        let bytes = &mut bytes;
        bytes::read_head(bytes)?;
        // In the order in which they are written.
        let mut status = Status {
            socket: read_text(bytes)?,
            policy: read_text(bytes)?,
            front_end: read(bytes)?,
            channel: read_text(bytes)?,
            channel_malformed: read(bytes)?,
            params: Params(read(bytes)?),
            max_flows: read(bytes)?,
            held_bytes: read(bytes)?,
            unpromised: read_text(bytes)?,
            counts: (0..sys::COUNT_MAX).map(|_| read(bytes)).collect::<Result<_, _>>()?,
            delays: Delays(read(bytes)?),
            epoch: read(bytes)?,
            rules: read_rules(bytes)?,
            last_rules: read_rules(bytes)?,
            pools: read_pools(bytes)?,
            flows: Vec::new(),
        };
        for _ in 0..read::<u32>(bytes)? {
            status.flows.push(Seen {
                key: FlowKey::from_raw(read(bytes)?),
                state: FlowState(read(bytes)?),
                share: BufferShare {
                    held_bytes: read(bytes)?,
                    granted_bytes: read(bytes)?,
                    share_bytes: read(bytes)?,
                    leaving_bytes: read(bytes)?,
                    no_buffer: read(bytes)?,
                    packet_loss: read(bytes)?,
                    state: read(bytes)?,
                },
                promised_bytes: read(bytes)?,
            });
        }
        bytes::at_end(bytes, status)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rules::Rules;
    use crate::testing::Talk;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut talk = Talk::v4();
        talk.open(&[]);
        talk.data_from_guest();
        let mut params = *talk.port.params();
        (params.0.pool_weight, params.0.pool_bytes) = (3, 1 << 20);
        let rule = Rule { name: "web".to_owned(), params };
        let judge = Arc::new(|_: &FlowKey, _| 0);
        let pools = vec!["gold".to_owned()];
        talk.port.set_rules(Rules { rules: vec![rule], judge, pools, polices: false });
        talk.data_from_guest();
        talk.port.promise_nothing("no ledger");
        let status = Status::new(&talk.port, "/run/card", "/etc/policy", 4711, None);
        let status = Status { channel: "up".to_owned(), channel_malformed: 7, ..status };
        let bytes = status.to_bytes();
        let read = Status::from_bytes(&bytes).expect("a status");
        assert_eq!((read.params, read.max_flows, read.held_bytes), (status.params, 16, 0));
        assert_eq!((&*read.socket, &*read.policy, read.epoch), ("/run/card", "/etc/policy", 1));
        assert_eq!((read.front_end, &read.counts), (4711, &status.counts));
        assert_eq!((&*read.channel, read.channel_malformed), ("up", 7));
        assert_eq!((read.delays, &*read.unpromised), (status.delays, "no ledger"));
        let [(rule, totals)] = &read.rules[..] else { panic!("one rule") };
        assert_eq!((&*rule.name, rule.params, totals.connections), ("web", params, 1));
        let [pool] = &read.pools[..] else { panic!("one pool") };
        assert_eq!(
            (&*pool.name, pool.window_bytes, pool.totals.weight),
            ("gold", Some(1 << 20), 3)
        );
        assert!(pool.totals.held_bytes > 0 && read.pools == status.pools);
        assert!(read.last_rules.is_empty());
        let [flow] = &read.flows[..] else { panic!("one flow") };
        assert_eq!((flow.key, flow.state.0), (talk.key(), talk.flow().0));
        let of = |key| Status::new(&talk.port, "/run/card", "", 0, Some(key)).flows.len();
        assert_eq!((of(talk.key()), of(Talk::v6().key())), (1, 0));
        for end in 0..bytes.len() {
            assert_eq!(Status::from_bytes(&bytes[..end]).err(), Some(BadBytes), "{end} bytes");
        }
        assert_eq!(Status::from_bytes(&[&bytes[..], &[0]].concat()).err(), Some(BadBytes));
        for at in 0..size_of_val(&bytes::HEAD) {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(Status::from_bytes(&other).err(), Some(BadBytes), "byte {at}");
        }
    }
}
