#!/bin/sh
# dpkt 1.9.8 and pcapng files of several interfaces (draft-ietf-opsawg-pcapng, 4.2): all packets get the clock
# and the link type of the first interface.
#
# Expected: the packet of the second interface, which counts ns, is 1 ms after the one of the first, which
# counts us, and each interface has its own link type. Seen: pcapng.Reader reads one interface description
# and skips the others, so that the second packet is in the year 55840, and datalink() names Ethernet for
# raw IP. A file of one interface is right. `dumpcap -i A -i B` and `mergecap` write files of several.
#
# Exit code 0: as seen with that version; 1: it behaves otherwise.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check dpkt==1.9.8
cat >"$work/interfaces.py" <<'PYTHON'
import io
import struct

import dpkt

NS = 1700000000 * 10**9
IP = b"\x45" + bytes(19)


def block(kind, body):
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def interface(link, resolution):
    options = struct.pack("<HHB3xHH", 9, 1, resolution, 0, 0)
    return block(1, struct.pack("<HHI", link, 0, 0) + options)


def packet(number, ticks, data):
    data_bytes = len(data)
    fields = (number, ticks >> 32, ticks & 0xFFFFFFFF, data_bytes, data_bytes)
    return block(6, struct.pack("<5I", *fields) + data + bytes(-data_bytes % 4))


section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
ethernet = bytes(12) + b"\x08\x00" + IP
capture = section + interface(1, 6) + interface(101, 9)
capture += packet(0, NS // 1000, ethernet) + packet(1, NS + 10**6, IP)
reader = dpkt.pcapng.Reader(io.BytesIO(capture))
for seconds, _ in reader:
    print(f"{seconds:.3f} s, link type {reader.datalink()}")
PYTHON
seen=$("$work/venv/bin/python" "$work/interfaces.py")
echo "dpkt $("$work/venv/bin/python" -c 'import dpkt; print(dpkt.__version__)'): packets at 1700000000.000 s" \
	'of Ethernet, and at 1700000000.001 s of raw IP (101)'
echo "$seen"
[ "$seen" = '1700000000.000 s, link type 1
1700000000001.000 s, link type 1' ] || {
	echo 'dpkt-interfaces: this is not what version 1.9.8 did' >&2
	exit 1
}
