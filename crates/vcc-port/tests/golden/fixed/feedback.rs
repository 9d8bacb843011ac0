//! Two ends that speak of marks: what each puts into options, over both families. The last step is
//! the second pass of the clone of the step before it.

use super::Step;
use crate::direction::Direction::{FromGuest, ToGuest};

pub const OVER_IPV4: &[Step] = &[
    // ECE and CWR; the offer (fd08 "vc", version 1, 1) makes header and packet 8 bytes longer.
    Step {
        what: "the SYN asks for ECN, and the far end whether it is vcc",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0034 0001 4000 40 06 26b9 0a000002 0a000009 \
                9c40 0050 01020304 00000000 8002 faf0 bf7f 0000 \
                020405b40101040201030307",
        leaves: "020000000002 020000000001 0800 \
                 45 00 003c 0001 4000 40 06 26b1 0a000002 0a000009 \
                 9c40 0050 01020304 00000000 a0c2 faf0 2a4a 0000 \
                 020405b40101040201030307fd08766301010000",
    },
    // Without ECE and the acceptance (2); MSS and scale as without feedback.
    Step {
        what: "the SYN-ACK accepts, and the guest sees neither",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 003c 0001 4000 40 06 26b1 0a000009 0a000002 \
                0050 9c40 0a0b0c0d 01020305 a052 fe88 1108 0000 \
                020405b40101040201030307fd08766301020000",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0034 0001 4000 40 06 26b9 0a000009 0a000002 \
                 0050 9c40 0a0b0c0d 01020305 8012 fe88 a5d4 0000 \
                 020405a00101040201030305",
    },
    // Nothing to report yet.
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
    // The first window that the guest is shown: ten segments of 1440 bytes at scale 5, 01c2.
    Step {
        what: "marked data",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 03 002e 0001 4000 40 06 26bc 0a000009 0a000002 \
                0050 9c40 0a0b0c0e 01020305 5018 01f6 317a 0000 \
                323030204f4b",
        leaves: "020000000002 020000000001 0800 \
                 45 00 002e 0001 4000 40 06 26bf 0a000009 0a000002 \
                 0050 9c40 0a0b0c0e 01020305 5018 01c2 31ae 0000 \
                 323030204f4b",
    },
    // ECE, and a PACK (kind ac, RFC 9768): ECT(0) bytes as they began, at 1; 6 bytes CE.
    Step {
        what: "the ACK reports the mark",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0028 0001 4000 40 06 26c5 0a000002 0a000009 \
                9c40 0050 01020305 0a0b0c14 5010 01f6 e31d 0000",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0030 0001 4000 40 06 26bd 0a000002 0a000009 \
                 9c40 0050 01020305 0a0b0c14 7050 01f6 15c7 0000 \
                 ac08000001000006",
    },
    // ECT(0), and still ECE, for no CWR has come. The counters have not moved.
    Step {
        what: "data with nothing to report",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 002d 0001 4000 40 06 26c0 0a000002 0a000009 \
                9c40 0050 01020305 0a0b0c14 5018 01f6 18ab 0000 \
                474554202f",
        leaves: "020000000002 020000000001 0800 \
                 45 02 002d 0001 4000 40 06 26be 0a000002 0a000009 \
                 9c40 0050 01020305 0a0b0c14 5058 01f6 186b 0000 \
                 474554202f",
    },
    // 5 bytes came unmarked; the guest sees no option.
    Step {
        what: "the peer's ACK reports",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 0030 0001 4000 40 06 26bd 0a000009 0a000002 \
                0050 9c40 0a0b0c14 0102030a 7010 01f6 1108 0000 \
                ac08000006000000",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0028 0001 4000 40 06 26c5 0a000009 0a000002 \
                 0050 9c40 0a0b0c14 0102030a 5010 01c2 e34c 0000",
    },
    // CWR ends the echo, but the mark beside it begins another.
    Step {
        what: "more marked data",
        from: ToGuest,
        comes: "020000000002 020000000001 0800 \
                45 03 002e 0001 4000 40 06 26bc 0a000009 0a000002 \
                0050 9c40 0a0b0c14 0102030a 5098 01f6 c576 0000 \
                3c68746d6c3e",
        leaves: "020000000002 020000000001 0800 \
                 45 00 002e 0001 4000 40 06 26bf 0a000009 0a000002 \
                 0050 9c40 0a0b0c14 0102030a 5018 01c2 c62a 0000 \
                 3c68746d6c3e",
    },
    // Data cannot take the option: a FACK goes beside it.
    Step {
        what: "data with a mark to report",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 00 002d 0001 4000 40 06 26c0 0a000002 0a000009 \
                9c40 0050 0102030a 0a0b0c1a 5018 01f6 9d31 0000 \
                696e646578",
        leaves: "020000000002 020000000001 0800 \
                 45 02 002d 0001 4000 40 06 26be 0a000002 0a000009 \
                 9c40 0050 0102030a 0a0b0c1a 5058 01f6 9cf1 0000 \
                 696e646578",
    },
    // Its clone, cut to the header: an ACK of one byte less, with 12 bytes CE by now.
    Step {
        what: "the FACK",
        from: FromGuest,
        comes: "020000000002 020000000001 0800 \
                45 02 002d 0001 4000 40 06 26be 0a000002 0a000009 \
                9c40 0050 0102030a 0a0b0c1a 5058 01f6 9cf1 0000 \
                696e646578",
        leaves: "020000000002 020000000001 0800 \
                 45 00 0034 0001 4000 40 06 26b9 0a000002 0a000009 \
                 9c40 0050 0102030a 0a0b0c19 8010 01f6 3d88 0000 \
                 fd0c7663010300000100000c",
    },
];

pub const OVER_IPV6: &[Step] = &[
    // ECE and CWR; the offer (fd08 "vc", version 1, 1) makes header and packet 8 bytes longer.
    Step {
        what: "the SYN asks for ECN, and the far end whether it is vcc",
        from: FromGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 0020 06 40 fd000000000000000000000000000002 \
                fd000000000000000000000000000009 \
                9c40 0050 01020304 00000000 8002 faf0 d97d 0000 \
                020405b40101040201030307",
        leaves: "020000000002 020000000001 86dd \
                 60012345 0028 06 40 fd000000000000000000000000000002 \
                 fd000000000000000000000000000009 \
                 9c40 0050 01020304 00000000 a0c2 faf0 4448 0000 \
                 020405b40101040201030307fd08766301010000",
    },
    // Without ECE and the acceptance (2); MSS and scale as without feedback.
    Step {
        what: "the SYN-ACK accepts, and the guest sees neither",
        from: ToGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 0028 06 40 fd000000000000000000000000000009 \
                fd000000000000000000000000000002 \
                0050 9c40 0a0b0c0d 01020305 a052 fe88 2b06 0000 \
                020405b40101040201030307fd08766301020000",
        leaves: "020000000002 020000000001 86dd \
                 60012345 0020 06 40 fd000000000000000000000000000009 \
                 fd000000000000000000000000000002 \
                 0050 9c40 0a0b0c0d 01020305 8012 fe88 bfd2 0000 \
                 020405a00101040201030305",
    },
    // Nothing to report yet.
    Step {
        what: "the ACK that ends the handshake",
        from: FromGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 0014 06 40 fd000000000000000000000000000002 \
                fd000000000000000000000000000009 \
                9c40 0050 01020305 0a0b0c0e 5010 01f6 fd21 0000",
        leaves: "020000000002 020000000001 86dd \
                 60012345 0014 06 40 fd000000000000000000000000000002 \
                 fd000000000000000000000000000009 \
                 9c40 0050 01020305 0a0b0c0e 5010 01f6 fd21 0000",
    },
    // The first window that the guest is shown: ten segments of 1440 bytes at scale 5, 01c2.
    Step {
        what: "marked data",
        from: ToGuest,
        comes: "020000000002 020000000001 86dd \
                60312345 001a 06 40 fd000000000000000000000000000009 \
                fd000000000000000000000000000002 \
                0050 9c40 0a0b0c0e 01020305 5018 01f6 4b78 0000 \
                323030204f4b",
        leaves: "020000000002 020000000001 86dd \
                 60012345 001a 06 40 fd000000000000000000000000000009 \
                 fd000000000000000000000000000002 \
                 0050 9c40 0a0b0c0e 01020305 5018 01c2 4bac 0000 \
                 323030204f4b",
    },
    // ECE, and a PACK (kind ac, RFC 9768): ECT(0) bytes as they began, at 1; 6 bytes CE.
    Step {
        what: "the ACK reports the mark",
        from: FromGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 0014 06 40 fd000000000000000000000000000002 \
                fd000000000000000000000000000009 \
                9c40 0050 01020305 0a0b0c14 5010 01f6 fd1b 0000",
        leaves: "020000000002 020000000001 86dd \
                 60012345 001c 06 40 fd000000000000000000000000000002 \
                 fd000000000000000000000000000009 \
                 9c40 0050 01020305 0a0b0c14 7050 01f6 2fc5 0000 \
                 ac08000001000006",
    },
    // ECT(0), and still ECE, for no CWR has come. The counters have not moved.
    Step {
        what: "data with nothing to report",
        from: FromGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 0019 06 40 fd000000000000000000000000000002 \
                fd000000000000000000000000000009 \
                9c40 0050 01020305 0a0b0c14 5018 01f6 32a9 0000 \
                474554202f",
        leaves: "020000000002 020000000001 86dd \
                 60212345 0019 06 40 fd000000000000000000000000000002 \
                 fd000000000000000000000000000009 \
                 9c40 0050 01020305 0a0b0c14 5058 01f6 3269 0000 \
                 474554202f",
    },
    // 5 bytes came unmarked; the guest sees no option.
    Step {
        what: "the peer's ACK reports",
        from: ToGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 001c 06 40 fd000000000000000000000000000009 \
                fd000000000000000000000000000002 \
                0050 9c40 0a0b0c14 0102030a 7010 01f6 2b06 0000 \
                ac08000006000000",
        leaves: "020000000002 020000000001 86dd \
                 60012345 0014 06 40 fd000000000000000000000000000009 \
                 fd000000000000000000000000000002 \
                 0050 9c40 0a0b0c14 0102030a 5010 01c2 fd4a 0000",
    },
    // CWR ends the echo, but the mark beside it begins another.
    Step {
        what: "more marked data",
        from: ToGuest,
        comes: "020000000002 020000000001 86dd \
                60312345 001a 06 40 fd000000000000000000000000000009 \
                fd000000000000000000000000000002 \
                0050 9c40 0a0b0c14 0102030a 5098 01f6 df74 0000 \
                3c68746d6c3e",
        leaves: "020000000002 020000000001 86dd \
                 60012345 001a 06 40 fd000000000000000000000000000009 \
                 fd000000000000000000000000000002 \
                 0050 9c40 0a0b0c14 0102030a 5018 01c2 e028 0000 \
                 3c68746d6c3e",
    },
    // Data cannot take the option: a FACK goes beside it.
    Step {
        what: "data with a mark to report",
        from: FromGuest,
        comes: "020000000002 020000000001 86dd \
                60012345 0019 06 40 fd000000000000000000000000000002 \
                fd000000000000000000000000000009 \
                9c40 0050 0102030a 0a0b0c1a 5018 01f6 b72f 0000 \
                696e646578",
        leaves: "020000000002 020000000001 86dd \
                 60212345 0019 06 40 fd000000000000000000000000000002 \
                 fd000000000000000000000000000009 \
                 9c40 0050 0102030a 0a0b0c1a 5058 01f6 b6ef 0000 \
                 696e646578",
    },
    // Its clone, cut to the header: an ACK of one byte less, with 12 bytes CE by now.
    Step {
        what: "the FACK",
        from: FromGuest,
        comes: "020000000002 020000000001 86dd \
                60212345 0019 06 40 fd000000000000000000000000000002 \
                fd000000000000000000000000000009 \
                9c40 0050 0102030a 0a0b0c1a 5058 01f6 b6ef 0000 \
                696e646578",
        leaves: "020000000002 020000000001 86dd \
                 60012345 0020 06 40 fd000000000000000000000000000002 \
                 fd000000000000000000000000000009 \
                 9c40 0050 0102030a 0a0b0c19 8010 01f6 5786 0000 \
                 fd0c7663010300000100000c",
    },
];
