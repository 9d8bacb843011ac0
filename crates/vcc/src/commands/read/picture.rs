//! The picture of one connection: `--plot`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use vcc_capture::Passed;
use vcc_command::output;
use vcc_engine::{FlowKey, Limit, Params};
use vcc_net::seq;
use vcc_port::{Flow, TraceEvent};
use vcc_view::{End, limit};

use super::guest::Guest;
use crate::commands::trace::plot;
use crate::commands::trace::sequence::Sequence;
use crate::commands::trace::series::Series;

const NS_PER_US: u64 = 1000;

pub struct Picture {
    path: PathBuf,
    guests: Vec<Guest>,
    peers: Vec<End>,
    /// File, place, key and beginning of the connection that is drawn: the first that the ends admit.
    drawn: Option<(usize, usize, FlowKey, u64)>,
    /// The ends admit another one.
    other: Option<FlowKey>,
    /// Its first segment, since the capture's start: the zero of the picture.
    began_us: Option<u64>,
    series: Series,
    sequence: Sequence,
    limited: String,
    /// The end of what the guest has sent.
    sent_to: Option<u32>,
}

impl Picture {
    /// # Errors
    /// The file cannot be written.
    pub fn begin(path: &Path, guests: &[Guest], peers: &[End]) -> anyhow::Result<Self> {
        // A picture that is there stays until there is another.
        let mut options = File::options();
        options
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            guests: guests.to_vec(),
            peers: peers.to_vec(),
            drawn: None,
            other: None,
            began_us: None,
            series: Series::from_zero(),
            sequence: Sequence::default(),
            limited: "nothing that the file shows".into(),
            sent_to: None,
        })
    }

    pub fn note(&mut self, file: usize, passed: &Passed, params: &Params) {
        let key = passed.key;
        let (guests, peers) = (&self.guests, &self.peers);
        let is_guest = guests.is_empty() || guests.iter().any(|it| it.may_be(key.guest()));
        let is_peer = peers.is_empty() || peers.iter().any(|it| it.matches(key.peer()));
        if !is_guest || !is_peer {
            return;
        }
        let connection = (file, passed.place, key, passed.began_ns);
        if *self.drawn.get_or_insert(connection) != connection {
            self.other.get_or_insert(key);
            return;
        }
        let segment = &passed.segment;
        let at_us = passed.elapsed_ns / NS_PER_US;
        let began_us = *self.began_us.get_or_insert(at_us);
        let time_s = at_us.saturating_sub(began_us) as f64 / 1e6;
        if passed.from_guest {
            if segment.payload_bytes > 0 {
                let is_repeated = self.sent_to.is_some_and(|end| seq::before(segment.seq, end));
                self.sequence.note_sent(time_s, segment.seq, segment.payload_bytes, is_repeated);
                let end = segment.end();
                let sent_to = self.sent_to.get_or_insert(end);
                if seq::after(end, *sent_to) {
                    *sent_to = end;
                }
            }
            return;
        }
        let state = *passed.state;
        if self.sent_to.is_some() {
            self.sequence.note_acked(time_s, state.snd_una, state.window_received_bytes());
        }
        let limited = state.limited_by(params, None, passed.now_us);
        if limited != Limit::Closed {
            self.limited = limit::text(limited);
        }
        let (guest, peer, vlan, inside) = (key.guest(), key.peer(), key.vlan(), key.is_inside());
        let at_us = at_us.saturating_sub(began_us);
        self.series.note(&TraceEvent { at_us, flow: Flow { guest, peer, vlan, inside, state } });
    }

    /// # Errors
    /// The ends admit no connection, or several.
    pub fn end(&self, is_json: bool) -> anyhow::Result<()> {
        let Some((_, _, key, _)) = &self.drawn else {
            bail!("--plot: no connection has these ends: `vcc read` without --plot lists all");
        };
        let ends = |key: &FlowKey| format!("--guest {} --peer {}", key.guest(), key.peer());
        if let Some(other) = &self.other {
            if other == key {
                bail!(
                    "--plot draws one connection, and several have the ends {}: cut the file, such as by \
                     `editcap -A`",
                    ends(key)
                );
            }
            bail!(
                "--plot draws one connection, and several have these ends, such as {} and {}: name one",
                ends(key),
                ends(other)
            );
        }
        let title = format!("{} - {}", key.guest(), key.peer());
        let svg = plot::svg(&title, &self.limited, &self.series, Some(&self.sequence));
        fs::write(&self.path, svg)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        // The standard output has the JSON.
        if !is_json {
            output::say(&format!("{title} drawn: {}\n", self.path.display()));
        }
        Ok(())
    }
}
