#!/bin/bash
# What `vcc read` costs, beside tshark and tcptrace.
#
#   measure-read.sh VCC [CONNECTIONS] [ROUNDS]
#
# Writes a capture of so many connections (100000, which makes 1 GB), of which 100 are live at a time, and
# has each tool sum up its connections, in turns. Prints the median over rounds (5) of each tool's CPU time
# with its extremes, the median of its wall time, and its memory. Tools that are not installed are left out.
set -eu
vcc=$1 connections=${2:-100000} rounds=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
capture=$work/capture.pcap

python3 - "$capture" "$connections" <<'PYTHON'
import struct
import sys

SYN_OPTIONS = bytes.fromhex("020405b40402080a00000001000000000103030a")
OPTIONS = bytes.fromhex("0101080a0000000200000001")
SYN, ACK, PSH, FIN = 2, 16, 8, 1
MSS, SEGMENTS, LIVE = 1448, 6, 100


def frame(client, from_client, seq, ack, flags, payload_bytes=0, options=OPTIONS):
    near = (b"\x0a" + client.to_bytes(3, "big"), 20000 + client % 40000)
    far = (bytes([192, 0, 2, 9]), 80)
    (source, source_port), (to, to_port) = (near, far) if from_client else (far, near)
    length = 40 + len(options) + payload_bytes
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 6, 0) + source + to
    words = 5 + len(options) // 4
    tcp = struct.pack(">HHIIHHHH", source_port, to_port, seq, ack, words << 12 | flags, 500, 0, 0)
    return bytes(12) + b"\x08\0" + ip + tcp + options + bytes(payload_bytes)


def connection(client):
    yield frame(client, True, 1000, 0, SYN, options=SYN_OPTIONS)
    yield frame(client, False, 5000, 1001, SYN | ACK, options=SYN_OPTIONS)
    yield frame(client, True, 1001, 5001, ACK)
    for segment in range(SEGMENTS):
        seq = 1001 + segment * MSS
        yield frame(client, True, seq, 5001, ACK | PSH, MSS)
        if segment % 2:
            yield frame(client, False, 5001, seq + MSS, ACK)
    end = 1001 + SEGMENTS * MSS
    yield frame(client, True, end, 5001, ACK | FIN)
    yield frame(client, False, 5001, end + 1, ACK | FIN)
    yield frame(client, True, end + 1, 5002, ACK)


path, connections = sys.argv[1], int(sys.argv[2])
time_us = 1700000000 * 10**6
with open(path, "wb", 1 << 20) as capture:
    capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for first in range(0, connections, LIVE):
        live = [connection(client) for client in range(first, min(first + LIVE, connections))]
        for frames in zip(*live):
            for data in frames:
                time_us += 5
                times = divmod(time_us, 10**6)
                capture.write(struct.pack("<IIII", *times, len(data), len(data)) + data)
PYTHON

declare -A commands=(
	[vcc]="$vcc read $capture --top 5"
	[tshark]="tshark -q -z conv,tcp -r $capture"
	[tcptrace]="tcptrace -n $capture"
)
tools=(vcc)
for tool in tshark tcptrace; do
	if command -v $tool >/dev/null; then tools+=("$tool"); else echo "$tool is not installed" >&2; fi
done
cat "$capture" >/dev/null # into the page cache
for _ in $(seq "$rounds"); do
	for tool in "${tools[@]}"; do
		# shellcheck disable=SC2086 # a command and its arguments
		/usr/bin/time -f '%U %S %e %M' -o "$work/time" ${commands[$tool]} >/dev/null 2>"$work/errors" || {
			echo "${commands[$tool]} fails: $(tail -1 "$work/errors")" >&2
			exit 1
		}
		tail -1 "$work/time" >>"$work/$tool"
	done
done
echo "$(stat -c %s "$capture") bytes, $connections connections, $rounds rounds"
for tool in "${tools[@]}"; do
	awk '{ print $1 + $2, $3, $4 }' "$work/$tool" | sort -n | awk -v tool="$tool" '
		{ cpu[NR] = $1; wall[NR] = $2; if ($3 > memory) memory = $3 }
		END {
			middle = int((NR + 1) / 2)
			printf "%-9s CPU %.2f s (%.2f to %.2f), wall %.2f s, %d MB\n",
				tool, cpu[middle], cpu[1], cpu[NR], wall[middle], memory / 1024
		}'
done
