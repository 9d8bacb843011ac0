//! Files that are damaged, or have what is not read.

use vcc_capture::What;
use vcc_capture::testing::{Pcapng, Style, frames, pcap, talk};

use crate::reading::{ETHERNET, assert_same, directly, ends, only, read};

#[test]
fn what_cannot_be_read_has_its_offset_and_its_reason() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let whole = pcap(Style::default(), ETHERNET, &frames);
    let problem = |file: &[u8]| {
        let (seen, problems) = read(file);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        (seen.packets, problem.clone())
    };
    let cut = &whole[..whole.len() - 5];
    let last = whole.len() - 16 - 54;
    let truncated = format!("byte {last}: {}", What::Truncated("a packet"));
    assert_eq!(problem(cut), (47, truncated));
    assert_eq!(problem(&whole[..30]).1, format!("byte 24: {}", What::Truncated("a packet")));
    assert_eq!(problem(&[]).1, format!("byte 0: {}", What::Empty));
    assert_eq!(problem(&whole[..20]).1, format!("byte 0: {}", What::Truncated("the header")));
    assert_eq!(problem(b"\xfd7zX").1, format!("byte 0: {}", What::Compressed("xz")));
    assert_eq!(problem(b"GET / HTTP").1, format!("byte 0: {}", What::Magic(0x2054_4547)));
    let mut long = whole.clone();
    long[last + 8..last + 12].fill(0x7f);
    let length = What::Length { what: "a packet", bytes: 0x7f7f_7f7f };
    assert_eq!(problem(&long), (47, format!("byte {last}: {length}")));
    let other = pcap(Style::default(), 105, &frames);
    let link = What::Link { interface: "0".into(), number: 105 };
    assert_eq!(problem(&other), (0, format!("byte 20: {link}")));
}

#[test]
fn what_a_pcapng_file_gets_wrong_is_reported_once() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let mut file = Pcapng::new(Style::default());
    file.interface(105, "wlan0", 6, 0);
    file.interface(1, "eth1", 100, 0);
    file.interface(1, "eth0", 6, 0);
    for (time_ns, frame) in &frames {
        (0..5).for_each(|interface| file.packet(interface, time_ns / 1000, frame));
        file.block(3, &frame[..20]);
        file.block(2, &frame[..40]);
    }
    let (seen, problems) = read(&file.file);
    assert_same(only(&seen), &directly(&frames, ends, None));
    let reasons: Vec<_> =
        problems.iter().map(|it| it.split_once(": ").expect("an offset").1).collect();
    let expected = [
        What::Link { interface: "wlan0".into(), number: 105 },
        What::Resolution { interface: "eth1".into(), raw: 100 },
        What::Interface(3),
        What::Interface(4),
        What::Untimed,
        What::Obsolete,
    ];
    assert_eq!(reasons, expected.map(|what| what.to_string()));
}

#[test]
fn a_block_that_contradicts_its_length_is_the_last() {
    let ends = ends(false);
    let frames = frames(&talk(ends[0], ends[1]));
    let mut file = Pcapng::new(Style::default());
    file.interface(1, "eth0", 6, 0);
    file.packet(0, 1, &frames[0].1);
    let good = file.file.clone();
    let at = good.len();
    for (place, word, what) in [
        (4, 3, What::Length { what: "a block", bytes: 3 }),
        (4, 8, What::Length { what: "a block", bytes: 8 }),
        (4, 1 << 30, What::Length { what: "a block", bytes: 1 << 30 }),
        // More captured bytes than there are in the block.
        (20, 0x0101_0101_u32, What::Damaged(6)),
    ] {
        let mut file = Pcapng { style: Style::default(), file: good.clone() };
        file.packet(0, 2, &frames[1].1);
        file.file[at + place..at + place + 4].copy_from_slice(&word.to_le_bytes());
        file.packet(0, 3, &frames[2].1);
        let (seen, problems) = read(&file.file);
        assert_eq!(problems, [format!("byte {at}: {what}")]);
        assert_eq!(seen.packets, 1);
    }
}

#[test]
fn time_that_runs_back_is_reported_once() {
    let ends = ends(false);
    let mut frames = frames(&talk(ends[0], ends[1]));
    let direct = directly(&frames, ends, None);
    frames[5].0 -= 15_000;
    frames[6].0 -= 15_000;
    let (seen, problems) = read(&pcap(Style::default(), ETHERNET, &frames));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with(&What::Backwards { back_us: 5 }.to_string()), "{problems:?}");
    assert_eq!(seen.backwards, 1);
    assert_eq!(only(&seen).state.retransmissions, direct.retransmissions);
}

#[test]
fn files_with_changed_bytes_are_read_or_refused() {
    let ends = ends(true);
    let frames = frames(&talk(ends[0], ends[1]));
    let mut blocks = Pcapng::new(Style::default());
    blocks.interface(1, "eth0", 0x80 | 30, 5);
    frames.iter().for_each(|(time_ns, frame)| blocks.packet(0, *time_ns, frame));
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for whole in [pcap(Style::default(), ETHERNET, &frames), blocks.file] {
        for _ in 0..500 {
            let mut file = whole.clone();
            for _ in 0..=random(8) {
                // Headers are at the beginning of a file, and there are few of them.
                let within = if random(2) == 0 { 400 } else { file.len() };
                let at = random(within);
                file[at] = random(256) as u8;
            }
            file.truncate(whole.len() - random(2) * random(whole.len()));
            let (seen, problems) = read(&file);
            assert!(seen.packets <= 48 && problems.len() <= 70, "{problems:?}");
        }
    }
}
