//! Sequence numbers over time: what was sent, again or for the first time, acknowledged and allowed.

/// Beyond this, neighbours are drawn as one.
const SPANS_MAX: usize = 1 << 17;

/// Sequence numbers count from the first one that was sent.
#[derive(Default)]
pub struct Sequence {
    /// A sequence number, and the bytes in front of it.
    base: Option<(u32, f64)>,
    pub sent: Spans,
    pub repeated: Spans,
    pub acked: Spans,
    /// The right edge of the peer's window.
    pub allowed: Spans,
}

/// Ranges of sequence numbers, each at a time.
#[derive(Default)]
pub struct Spans(Vec<Span>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub time_s: f64,
    pub from_bytes: f64,
    pub to_bytes: f64,
}

impl Sequence {
    /// A segment of the guest.
    pub fn note_sent(&mut self, time_s: f64, seq: u32, bytes: u32, is_repeated: bool) {
        let from_bytes = self.place(seq);
        let span = Span { time_s, from_bytes, to_bytes: from_bytes + f64::from(bytes) };
        if is_repeated { &mut self.repeated } else { &mut self.sent }.push(span);
    }

    /// An ACK, with the bytes that the peer's window allows behind it, if they are known.
    pub fn note_acked(&mut self, time_s: f64, ack: u32, window_bytes: Option<u64>) {
        let at_bytes = self.place(ack);
        self.acked.push(Span { time_s, from_bytes: at_bytes, to_bytes: at_bytes });
        if let Some(window_bytes) = window_bytes {
            let edge_bytes = at_bytes + window_bytes as f64;
            self.allowed.push(Span { time_s, from_bytes: edge_bytes, to_bytes: edge_bytes });
        }
    }

    /// The bytes in front of a sequence number, which wraps.
    fn place(&mut self, seq: u32) -> f64 {
        let (base, before_bytes) = self.base.unwrap_or((seq, 0.0));
        let distance = seq.wrapping_sub(base) as i32;
        let at_bytes = before_bytes + f64::from(distance);
        if distance >= 0 {
            self.base = Some((seq, at_bytes));
        }
        at_bytes
    }
}

impl Spans {
    fn push(&mut self, span: Span) {
        if self.0.len() >= SPANS_MAX {
            let joined = self.0.chunks(2).map(|pair| pair.iter().copied().reduce(Span::joined));
            self.0 = joined.flatten().collect();
        }
        self.0.push(span);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Span> {
        self.0.iter()
    }

    /// Their lower ends.
    pub fn line(&self) -> Vec<(f64, f64)> {
        self.0.iter().map(|span| (span.time_s, span.from_bytes)).collect()
    }
}

impl Span {
    fn joined(self, other: Self) -> Self {
        Self {
            time_s: self.time_s,
            from_bytes: self.from_bytes.min(other.from_bytes),
            to_bytes: self.to_bytes.max(other.to_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap() {
        let mut sequence = Sequence::default();
        sequence.note_sent(0.0, u32::MAX - 99, 100, false);
        sequence.note_sent(0.1, 0, 50, false);
        sequence.note_acked(0.2, 0, Some(1000));
        sequence.note_sent(0.3, u32::MAX - 99, 100, true);
        sequence.note_acked(0.4, 50, None);
        let spans = |spans: &Spans| -> Vec<(f64, f64)> {
            spans.iter().map(|span| (span.from_bytes, span.to_bytes)).collect()
        };
        assert_eq!(spans(&sequence.sent), [(0.0, 100.0), (100.0, 150.0)]);
        assert_eq!(spans(&sequence.repeated), [(0.0, 100.0)]);
        assert_eq!(sequence.acked.line(), [(0.2, 100.0), (0.4, 150.0)]);
        assert_eq!(sequence.allowed.line(), [(0.2, 1100.0)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut sequence = Sequence::default();
        for step in 0..3 * SPANS_MAX as u32 {
            sequence.note_sent(f64::from(step), step * 10, 10, false);
        }
        let sent: Vec<_> = sequence.sent.iter().collect();
        assert!(sent.len() <= SPANS_MAX);
        assert_eq!(sent[0].from_bytes, 0.0);
        let is_whole = sent.windows(2).all(|pair| pair[0].to_bytes == pair[1].from_bytes);
        assert!(is_whole && sent[sent.len() - 1].to_bytes == 30.0 * SPANS_MAX as f64);
    }
}
