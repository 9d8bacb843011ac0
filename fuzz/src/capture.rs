//! A file as a capture: reading it ends, problems lie within it, and what its connections did is possible. It is
//! compared with itself as the two sides of a port.

use vcc_capture::both::{ByFace, Comparison, read_in_step};
use vcc_capture::{Capture, Content, Packet, Replay, Replayed, Treatment};
use vcc_engine::Params;

use crate::steps;

const MAX_CONNECTIONS: usize = 4;
/// A file of a few bytes may decompress to much.
const MAX_PACKETS: u64 = 1000;

pub fn run(input: &[u8]) {
    let Ok(content) = Content::from_file(input) else { return };
    let most_bytes = if content.is_compressed { u64::MAX } else { input.len() as u64 };
    let mut replay = Replay::new(Treatment::from_params(Params::default()), MAX_CONNECTIONS, None);
    let mut observed = 0;
    if let Ok(mut capture) = Capture::open(content.reader) {
        let mut packet = Packet::default();
        for _ in 0..MAX_PACKETS {
            steps::count();
            let problem = match capture.next(&mut packet) {
                Ok(false) => break,
                Ok(true) => replay.take(&mut packet, &mut |_| observed += 1).err(),
                Err(problem) => Some(problem),
            };
            if let Some(problem) = problem {
                assert!(problem.offset <= most_bytes, "{problem}");
            }
        }
    }
    compare(input);
    let seen = replay.end();
    assert!(observed <= seen.segments && seen.segments <= seen.packets);
    check(&seen);
}

fn compare(input: &[u8]) {
    let sides = ByFace { guest: input, fabric: input };
    let mut comparison = Comparison::new(MAX_CONNECTIONS, None);
    read_in_step(sides, None, &mut comparison, &mut |_, _| steps::count());
    let outcome = comparison.end();
    assert!(outcome.connections.len() <= MAX_CONNECTIONS);
    assert_eq!(outcome.total.payload.different_bytes, 0, "a file differs from itself");
}

fn check(seen: &Replayed) {
    assert!(seen.connections.len() <= MAX_CONNECTIONS, "{} connections", seen.connections.len());
    for connection in &seen.connections {
        let life = &connection.life;
        assert!(connection.place < seen.places.len());
        assert!(life.beyond_bytes <= life.sent_bytes, "{life:?}");
        assert!(life.missing_bytes + life.lost_upstream_bytes <= life.sent_bytes, "{life:?}");
        for part_ns in [life.beyond_ns, life.stalls.total_ns, life.limited_ns.iter().sum()] {
            assert!(part_ns <= life.lasted_ns, "{life:?}");
        }
        assert_eq!(life.stalls.count > 0, life.stalls.longest.is_some());
    }
}
