//! Over IPv4: from 10.0.0.2 port 40000 (9c40) to 10.0.0.9 port 80 (50).

use super::Step;
use crate::direction::Direction::{FromGuest, ToGuest};

pub const STEPS: &[Step] = &[
    // ECE and CWR: 8002 becomes 80c2, so the checksum is lower by c0.
    Step {
        what: "the SYN asks for ECN in the guest's stead",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0034 0001 4000 40 06 26b9 0a000002 0a000009 \
                9c40 0050 01020304 00000000 8002 faf0 bf7f 0000 \
                020405b40101040201030307",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0034 0001 4000 40 06 26b9 0a000002 0a000009 \
                 9c40 0050 01020304 00000000 80c2 faf0 bebf 0000 \
                 020405b40101040201030307",
    },
    // Without ECE (-40), of an MSS that is whole units of the new scale (1460 to 1440, -14), of
    // scale 5 instead of 7 (-2): the checksum is higher by 56. The window of a SYN-ACK has no
    // scale: it stays.
    Step {
        what: "the SYN-ACK hides the answer",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0034 0001 4000 40 06 26b9 0a000009 0a000002 \
                0050 9c40 0a0b0c0d 01020305 8052 fe88 a57e 0000 \
                020405b40101040201030307",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0034 0001 4000 40 06 26b9 0a000009 0a000002 \
                 0050 9c40 0a0b0c0d 01020305 8012 fe88 a5d4 0000 \
                 020405a00101040201030305",
    },
    // No data, so it is not ECN-capable (RFC 3168, 6.1.4).
    Step {
        what: "the ACK that ends the handshake",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0028 0001 4000 40 06 26c5 0a000002 0a000009 \
                9c40 0050 01020305 0a0b0c0e 5010 01f6 e323 0000",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0028 0001 4000 40 06 26c5 0a000002 0a000009 \
                 9c40 0050 01020305 0a0b0c0e 5010 01f6 e323 0000",
    },
    // The TOS keeps its DSCP (EF, b8) and gets ECT(0), and the IP checksum is lower by 2.
    Step {
        what: "data leaves ECN-capable",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 b8 002d 0001 4000 40 06 2608 0a000002 0a000009 \
                9c40 0050 01020305 0a0b0c0e 5018 01f6 18b1 0000 \
                474554202f",
        leaves: "020000000002 020000000001 0800 \
                 45 ba 002d 0001 4000 40 06 2606 0a000002 0a000009 \
                 9c40 0050 01020305 0a0b0c0e 5018 01f6 18b1 0000 \
                 474554202f",
    },
    // The peer offers 502 << 7 = 64256 bytes. The initial window of ten segments of 1440 bytes is
    // 14400 = 450 << 5: 01c2, by 34 less than 01f6.
    Step {
        what: "its ACK shows the underlay's window",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 b8 0028 0001 4000 40 06 260d 0a000009 0a000002 \
                0050 9c40 0a0b0c0e 0102030a 5010 01f6 e31e 0000",
        leaves: "020000000002 020000000001 0800 \
                 45 b8 0028 0001 4000 40 06 260d 0a000009 0a000002 \
                 0050 9c40 0a0b0c0e 0102030a 5010 01c2 e352 0000",
    },
    Step {
        what: "more data",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 002d 0001 4000 40 06 26c0 0a000002 0a000009 \
                9c40 0050 0102030a 0a0b0c0e 5018 01f6 9d3d 0000 \
                696e646578",
        leaves: "020000000002 020000000001 0800 \
                 45 02 002d 0001 4000 40 06 26be 0a000002 0a000009 \
                 9c40 0050 0102030a 0a0b0c0e 5018 01f6 9d3d 0000 \
                 696e646578",
    },
    // The guest sees no ECE. Its window has shrunk, but the right edge stays where the last ACK
    // put it: 14400 bytes from there are 14395 from here, which takes 450 units.
    Step {
        what: "an ACK with ECE",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0028 0001 4000 40 06 26c5 0a000009 0a000002 \
                0050 9c40 0a0b0c0e 0102030f 5050 01f6 e2d9 0000",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0028 0001 4000 40 06 26c5 0a000009 0a000002 \
                 0050 9c40 0a0b0c0e 0102030f 5010 01c2 e34d 0000",
    },
    // CWR: 5018 becomes 5098.
    Step {
        what: "the next data reports the reduction",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 002d 0001 4000 40 06 26c0 0a000002 0a000009 \
                9c40 0050 0102030f 0a0b0c0e 5018 01f6 d436 0000 \
                2e68746d6c",
        leaves: "020000000002 020000000001 0800 \
                 45 02 002d 0001 4000 40 06 26be 0a000002 0a000009 \
                 9c40 0050 0102030f 0a0b0c0e 5098 01f6 d3b6 0000 \
                 2e68746d6c",
    },
    // CE does not reach a guest that negotiated no ECN.
    Step {
        what: "marked data",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 03 002e 0001 4000 40 06 26bc 0a000009 0a000002 \
                0050 9c40 0a0b0c0e 01020314 5018 01f6 316b 0000 \
                323030204f4b",
        leaves: "020000000002 020000000001 0800 \
                 45 00 002e 0001 4000 40 06 26bf 0a000009 0a000002 \
                 0050 9c40 0a0b0c0e 01020314 5018 01c2 319f 0000 \
                 323030204f4b",
    },
    // ECE: 5010 becomes 5050.
    Step {
        what: "the mark is echoed",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0028 0001 4000 40 06 26c5 0a000002 0a000009 \
                9c40 0050 01020314 0a0b0c14 5010 01f6 e30e 0000",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0028 0001 4000 40 06 26c5 0a000002 0a000009 \
                 9c40 0050 01020314 0a0b0c14 5050 01f6 e2ce 0000",
    },
];
