#!/bin/sh
# pcap-parser 0.17.0 and the clocks of pcapng interfaces (draft-ietf-opsawg-pcapng, 4.2): a resolution in
# powers of two is refused, and an offset in a big-endian section is read as little-endian.
#
# Expected: if_tsresol 0x8a is 2^10 = 1024 units a second, and if_tsoffset 3600 is 3600 s in either byte
# order. Seen: build_ts_resolution() compares the byte with 63 while bit 7, which stands for the base of
# two, is still set, so every power of two is None; if_tsoffset is decoded by from_le_bytes().
#
# Exit code 0: as seen with that version; 1: it behaves otherwise.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"
cat >"$work/Cargo.toml" <<'TOML'
[package]
name = "clocks"
version = "0.0.0"
edition = "2021"

[dependencies]
pcap-parser = "=0.17.0"
TOML
cat >"$work/src/main.rs" <<'RUST'
use pcap_parser::pcapng::build_ts_resolution;
use pcap_parser::{Block, PcapBlockOwned, PcapNGReader, traits::PcapReaderIterator};

/// A section header, and an interface of Ethernet with both options, in one byte order.
fn capture(is_big: bool) -> Vec<u8> {
    let u16s = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let u32s = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let i64s = |value: i64| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let length = u32s(body.len() as u32 + 12);
        [&u32s(kind)[..], &length, body, &length].concat()
    };
    let section = [&u32s(0x1a2b3c4d)[..], &u16s(1), &u16s(0), &[0xff; 8]].concat();
    let interface = [
        &u16s(1)[..], &u16s(0), &u32s(65535),
        &u16s(9), &u16s(1), &[0x8a, 0, 0, 0], // if_tsresol, padded
        &u16s(14), &u16s(8), &i64s(3600),     // if_tsoffset
        &u16s(0), &u16s(0),                   // opt_endofopt
    ]
    .concat();
    [block(0x0a0d0d0a, &section), block(1, &interface)].concat()
}

fn main() {
    for (name, is_big) in [("little-endian", false), ("big-endian", true)] {
        let bytes = capture(is_big);
        let mut reader = PcapNGReader::new(65536, &bytes[..]).expect("a section");
        loop {
            let (used, block) = reader.next().expect("a block");
            if let PcapBlockOwned::NG(Block::InterfaceDescription(interface)) = &block {
                let resolution = build_ts_resolution(interface.if_tsresol);
                println!("{name}: {resolution:?} {}", interface.if_tsoffset);
                break;
            }
            reader.consume(used);
        }
    }
}
RUST
seen=$(cd "$work" && cargo run --quiet)
echo 'pcap-parser 0.17.0: resolution and offset of an interface with 2^10 units a second and 3600 s'
echo "$seen"
[ "$seen" = 'little-endian: None 3600
big-endian: None 1156862154280796160' ] || {
	echo 'pcap-parser-clocks: this is not what version 0.17.0 did' >&2
	exit 1
}
