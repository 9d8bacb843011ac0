//! What the host's messages mean, without I/O.

use vcc_channel::{Bad, FromGuest, FromHost, Message, Stream, VERSION};

use super::reports::Words;
use crate::Result;

const NS_PER_MS: u64 = 1_000_000;

/// Follows the messages of one host after the other.
pub(super) struct Follower<W> {
    words: W,
    stream: Stream<FromHost>,
    /// The host has answered.
    is_greeted: bool,
    /// What was reported before it is void.
    session: u32,
    /// Something was reported in the session.
    is_used: bool,
    repaired_losses: u64,
}

/// What was read is no message: the channel is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Bad(#[from] Bad),
    #[error(transparent)]
    Here(#[from] crate::Error),
}

impl<W: Words> Follower<W> {
    /// Without a lease.
    pub fn new(mut words: W) -> Result<Self> {
        let session = words.session()?;
        let mut follower = Follower {
            words,
            stream: Stream::default(),
            is_greeted: false,
            session,
            is_used: true,
            repaired_losses: 0,
        };
        follower.void()?;
        Ok(follower)
    }

    pub fn hello() -> Vec<u8> {
        FromGuest::Hello { version: VERSION }.to_bytes().to_vec()
    }

    pub fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// Losses that the host has repaired, so that the guest saw none.
    pub fn repaired_losses(&self) -> u64 {
        self.repaired_losses
    }

    /// The channel was closed.
    pub fn end(&mut self) -> Result<()> {
        self.stream = Stream::default();
        self.is_greeted = false;
        self.is_used = true;
        self.void()
    }

    /// Takes what was read at this time, and returns the answer.
    ///
    /// # Errors
    /// It is no message of a host, or the kernel does not take what it says.
    pub fn read(&mut self, bytes: &[u8], now_ns: u64) -> std::result::Result<Vec<u8>, Failure> {
        self.stream.push(bytes);
        let mut answer = Vec::new();
        loop {
            // A device may still have the rest of what was for another process.
            let next = if self.is_greeted { self.stream.take()? } else { self.stream.find() };
            let Some(message) = next else { return Ok(answer) };
            if self.is_greeted || matches!(message, FromHost::Hello { .. }) {
                self.obey(message, now_ns, &mut answer)?;
            }
        }
    }

    fn obey(&mut self, message: FromHost, now_ns: u64, answer: &mut Vec<u8>) -> Result<()> {
        match message {
            // Each version up to this one is known.
            FromHost::Hello { .. } => {
                self.is_greeted = true;
                return self.void();
            }
            FromHost::Online { lease_ms } => {
                self.is_used = true;
                let until_ns = now_ns.saturating_add(u64::from(lease_ms) * NS_PER_MS);
                self.words.lease(self.session, until_ns)?;
            }
            FromHost::Offline => self.void()?,
            FromHost::FlowOnline { flow, grant_bytes } => {
                self.is_used = true;
                return self.words.report(self.session, &flow, Some(grant_bytes));
            }
            FromHost::FlowOffline { flow } => {
                self.is_used = true;
                return self.words.report(self.session, &flow, None);
            }
            FromHost::FlowRepaired { .. } => {
                self.repaired_losses += 1;
                return Ok(());
            }
        }
        answer.extend(FromGuest::Alive.to_bytes());
        Ok(())
    }

    /// Ends the lease, and begins a session in which nothing has been reported.
    fn void(&mut self) -> Result<()> {
        if self.is_used {
            // 0 is that of connections that began without a lease.
            self.session = self.session.checked_add(1).unwrap_or(1);
            self.is_used = false;
            self.words.lease(self.session, 0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use vcc_channel::{Field, Flow, MESSAGE_BYTES};

    use super::*;

    #[derive(Default)]
    struct Written {
        session: u32,
        until_ns: u64,
        flows: HashMap<Flow, (u32, Option<u32>)>,
    }

    impl Words for &mut Written {
        fn session(&mut self) -> Result<u32> {
            Ok(self.session)
        }

        fn lease(&mut self, session: u32, until_ns: u64) -> Result<()> {
            (self.session, self.until_ns) = (session, until_ns);
            Ok(())
        }

        fn report(&mut self, session: u32, flow: &Flow, grant_bytes: Option<u32>) -> Result<()> {
            self.flows.insert(*flow, (session, grant_bytes));
            Ok(())
        }
    }

    const HELLO: FromHost = FromHost::Hello { version: VERSION, lease_ms: 2000 };
    const ONLINE: FromHost = FromHost::Online { lease_ms: 2000 };

    fn flow(port: u16) -> Flow {
        Flow::new(([192, 0, 2, 1], port).into(), ([192, 0, 2, 9], 80).into())
    }

    fn bytes(messages: &[FromHost]) -> Vec<u8> {
        messages.iter().flat_map(Message::to_bytes).collect()
    }

    #[test]
    fn each_online_renews_the_lease_and_is_answered() {
        let mut written = Written { session: 7, ..Written::default() };
        let mut follower = Follower::new(&mut written).expect("a follower");
        let answer = follower.read(&bytes(&[HELLO]), 5).expect("a Hello");
        assert_eq!((answer, follower.words.until_ns), (vec![], 0));
        for now_ns in [10, 500_000_010] {
            let answer = follower.read(&bytes(&[ONLINE]), now_ns).expect("a lease");
            assert_eq!(answer, FromGuest::Alive.to_bytes());
            assert_eq!(follower.words.until_ns, now_ns + 2_000_000_000);
        }
        assert_eq!(written.session, 8, "that of a process before is void");
    }

    #[test]
    fn what_is_reported_is_void_after_offline_another_hello_and_the_end() {
        let mut written = Written::default();
        let mut follower = Follower::new(&mut written).expect("a follower");
        let flow_online = FromHost::FlowOnline { flow: flow(1), grant_bytes: 9 };
        let flow_offline = FromHost::FlowOffline { flow: flow(2) };
        for (session, by) in [(2, FromHost::Offline), (3, HELLO), (4, FromHost::Offline)] {
            let all = bytes(&[HELLO, ONLINE, flow_online, flow_offline]);
            follower.read(&all, 10).expect("messages");
            let flows = &follower.words.flows;
            let before = session - 1;
            assert_eq!(flows[&flow(1)], (before, Some(9)));
            assert_eq!(flows[&flow(2)], (before, None));
            assert!(follower.words.until_ns > 0);
            // Often, it is one change.
            follower.read(&bytes(&[by, by]), 20).expect("messages");
            assert_eq!((follower.words.session, follower.words.until_ns), (session, 0));
        }
        follower.read(&bytes(&[ONLINE]), 10).expect("messages");
        follower.end().expect("the end");
        assert_eq!((follower.words.session, follower.words.until_ns), (5, 0));
    }

    #[test]
    fn nothing_is_believed_before_a_hello() {
        let mut written = Written::default();
        let mut follower = Follower::new(&mut written).expect("a follower");
        let rest = bytes(&[ONLINE, FromHost::FlowOffline { flow: flow(1) }]);
        let answer = follower.read(&rest[MESSAGE_BYTES / 2..], 5).expect("skipped");
        assert_eq!((answer, follower.words.until_ns), (vec![], 0));
        assert!(!follower.is_greeted() && follower.words.flows.is_empty());
        follower.read(&[3; 1000], 5).expect("skipped");
        follower.read(&bytes(&[HELLO, ONLINE]), 5).expect("messages");
        assert!(follower.is_greeted() && follower.words.until_ns > 0);
    }

    #[test]
    fn garbage_behind_a_hello_is_named() {
        let mut written = Written::default();
        let mut follower = Follower::new(&mut written).expect("a follower");
        let mut all = bytes(&[HELLO, ONLINE]);
        all.extend([3; MESSAGE_BYTES]);
        let failure = follower.read(&all, 5).expect_err("garbage");
        assert!(matches!(failure, Failure::Bad(Bad { field: Field::Magic, .. })), "{failure}");
        assert_eq!(failure.to_string(), "a message whose magic is 0x3030303");
    }

    #[test]
    fn repaired_losses_are_counted() {
        let mut written = Written::default();
        let mut follower = Follower::new(&mut written).expect("a follower");
        let repaired = FromHost::FlowRepaired { flow: flow(1) };
        let answer = follower.read(&bytes(&[HELLO, repaired, repaired]), 5).expect("messages");
        assert_eq!((answer, follower.repaired_losses()), (vec![], 2));
        // A later version of the host uses this one.
        let later = FromHost::Hello { version: 9, lease_ms: 5 };
        follower.read(&bytes(&[later, ONLINE]), 5).expect("messages");
    }
}
