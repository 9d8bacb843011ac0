#!/bin/sh
# tshark 4.0.17 and a sender's own capture: of a recovery by SACK, retransmissions behind the first hole are
# called "Out-Of-Order", and tcp.analysis.retransmission lacks them.
#
# Expected: what a sender sends again is a retransmission; nothing can reorder it before its own device.
# Seen: only a segment at the cumulative ACK, within 20 ms after two duplicate ACKs, is one in any case. For
# others, tshark presumes reordering if the highest sequence number left less than the handshake's round
# trip ago. A sender with more data is always within that time, however long the path.
#
# Here the second and the fifth of eight segments are lost on a path of 40 ms. SACK reports both, and the
# sender sends both again between new segments.
#
# Exit code 0: as seen with that version; 1: it behaves otherwise.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$work/sender.pcap" <<'PYTHON'
import struct
import sys

A, B = (b"\x0a\0\0\1", 40000), (b"\x0a\0\0\2", 80)
MSS, START = 1448, 1700000000 * 10**6
SYN, ACK = 2, 16


def sack(*blocks):
    edges = [1001 + MSS * edge for block in blocks for edge in block]
    return struct.pack(f"!BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges)


def packet(us, source, target, flags, sequence, ack, options=b"", data=0):
    tcp = struct.pack("!HHII", source[1], target[1], sequence, ack)
    tcp += struct.pack("!BBHHH", (20 + len(options)) << 2, flags, 60000, 0, 0) + options
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp) + data, 0, 0x4000, 64, 6, 0)
    ip += source[0] + target[0]
    stored = ip + tcp  # as with a short snapshot length
    time = divmod(START + us, 10**6)
    return struct.pack("<4I", *time, len(stored), len(stored) + data) + stored


def data(us, number):
    return packet(us, A, B, ACK, 1001 + MSS * number, 5001, data=MSS)


def acked(us, number, *blocks):
    return packet(us, B, A, ACK, 5001, 1001 + MSS * number, sack(*blocks) if blocks else b"")


mss = b"\2\4\5\xb4\4\2\1\1"
packets = [packet(0, A, B, SYN, 1000, 0, mss), packet(40000, B, A, SYN | ACK, 5000, 1001, mss)]
packets += [packet(40010, A, B, ACK, 1001, 5001)]
packets += [data(40100 + 10 * number, number) for number in range(8)]
packets += [acked(80100, 1), data(80110, 8), acked(80120, 1, (2, 4)), data(80130, 9)]
packets += [acked(80170, 1, (5, 8), (2, 4)), data(80180, 10), data(80190, 1), data(80200, 4)]
packets += [data(80210, 11), acked(120300, 12)]
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 101) + b"".join(packets))
PYTHON
version=$(tshark --version 2>/dev/null | head -n 1)
count() {
	tshark -r "$work/sender.pcap" -Y "tcp.analysis.$1" -T fields -e tcp.seq 2>/dev/null | paste -s -d ' '
}
seen="retransmission: $(count retransmission)
out_of_order: $(count out_of_order)"
echo "$version: relative sequence numbers of what was sent again, 1449 and 5793"
echo "$seen"
case $version in *' 4.0.17 '*) ;; *) seen="another version: $seen" ;; esac
[ "$seen" = 'retransmission: 1449
out_of_order: 5793' ] || {
	echo 'tshark-retransmissions: this is not what version 4.0.17 did' >&2
	exit 1
}
