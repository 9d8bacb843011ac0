//! What a guest knows of its connections, and what is news for it.

use std::collections::HashMap;

use vcc_channel::{FLOWS_MAX, Flow, FromHost};
use vcc_domain::Grant;
use vcc_engine::FlowKey;

/// What was reported of each connection.
#[derive(Default)]
pub(super) struct Announcer {
    reported: HashMap<FlowKey, Reported>,
    round: u64,
}

struct Reported {
    window_bytes: Option<u32>,
    repaired: u32,
    round: u64,
}

/// More connections than a guest remembers are not held.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Announcer {
    /// The guest knows nothing, or what it knows is void.
    pub fn begin(&mut self) {
        self.reported.clear();
    }

    /// Adds what the guest does not know yet about a connection.
    ///
    /// # Errors
    /// It must not flood there, and may not remember that.
    pub fn note(&mut self, grant: &Grant, news: &mut Vec<FromHost>) -> Result<(), TooMany> {
        let Grant { key, window_bytes, repaired } = *grant;
        let flow = Flow::new(key.guest(), key.peer());
        let is_full = self.reported.len() >= FLOWS_MAX;
        match self.reported.get_mut(&key) {
            Some(reported) => {
                reported.round = self.round;
                if repaired != reported.repaired {
                    reported.repaired = repaired;
                    news.push(FromHost::FlowRepaired { flow });
                }
                if !differs(reported.window_bytes, window_bytes) {
                    return Ok(());
                }
                reported.window_bytes = window_bytes;
            }
            None if is_full && window_bytes.is_none() => return Err(TooMany),
            // It has what each connection has that is not named.
            None if is_full => return Ok(()),
            None => {
                let reported = Reported { window_bytes, repaired, round: self.round };
                self.reported.insert(key, reported);
            }
        }
        news.push(match window_bytes {
            Some(grant_bytes) => FromHost::FlowOnline { flow, grant_bytes },
            None => FromHost::FlowOffline { flow },
        });
        Ok(())
    }

    /// All connections were noted once: the others have ended.
    pub fn end_round(&mut self) {
        let round = self.round;
        self.reported.retain(|_, reported| reported.round == round);
        self.round += 1;
    }
}

/// Is the change worth a message? By more than a quarter.
fn differs(before: Option<u32>, now: Option<u32>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before.abs_diff(now) > before / 4,
        (before, now) => before.is_some() != now.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u16) -> FlowKey {
        FlowKey::new(([10, 0, 0, 1], number).into(), ([10, 0, 0, 2], 80).into(), None)
    }

    fn grant(number: u16, window_bytes: Option<u32>, repaired: u32) -> Grant {
        Grant { key: key(number), window_bytes, repaired }
    }

    fn flow(number: u16) -> Flow {
        Flow::new(key(number).guest(), key(number).peer())
    }

    fn news(announcer: &mut Announcer, grant: &Grant) -> Vec<FromHost> {
        let mut news = Vec::new();
        announcer.note(grant, &mut news).expect("room");
        news
    }

    #[test]
    fn only_changes_of_more_than_a_quarter_are_news() {
        let mut announcer = Announcer::default();
        let online = |grant_bytes| vec![FromHost::FlowOnline { flow: flow(1), grant_bytes }];
        let offline = vec![FromHost::FlowOffline { flow: flow(1) }];
        for (window_bytes, expected) in [
            (Some(1000), online(1000)),
            (Some(1000), vec![]),
            (Some(1250), vec![]),
            (Some(1251), online(1251)),
            (Some(939), vec![]),
            (Some(938), online(938)),
            (None, offline),
            (None, vec![]),
            (Some(938), online(938)),
        ] {
            assert_eq!(news(&mut announcer, &grant(1, window_bytes, 0)), expected);
        }
        announcer.begin();
        assert_eq!(news(&mut announcer, &grant(1, Some(938), 0)), online(938));
    }

    #[test]
    fn repaired_losses_are_news_and_those_before_are_not() {
        let mut announcer = Announcer::default();
        assert_eq!(news(&mut announcer, &grant(1, Some(1), 7)).len(), 1);
        assert_eq!(news(&mut announcer, &grant(1, Some(1), 7)), []);
        let expected = [FromHost::FlowRepaired { flow: flow(1) }];
        assert_eq!(news(&mut announcer, &grant(1, Some(1), 9)), expected);
    }

    #[test]
    fn ended_connections_make_room() {
        let mut announcer = Announcer::default();
        for number in 0..FLOWS_MAX as u16 {
            assert_eq!(news(&mut announcer, &grant(number, Some(1), 0)).len(), 1);
        }
        assert_eq!(news(&mut announcer, &grant(u16::MAX, Some(1), 0)), []);
        let refused = announcer.note(&grant(u16::MAX, None, 0), &mut Vec::new());
        assert_eq!(refused, Err(TooMany));
        announcer.end_round();
        assert_eq!(news(&mut announcer, &grant(1, Some(1), 0)), []);
        announcer.end_round();
        assert_eq!(news(&mut announcer, &grant(u16::MAX, None, 0)).len(), 1);
    }
}
