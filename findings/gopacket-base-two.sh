#!/bin/sh
# gopacket 1.7.7 and pcapng interfaces whose clock counts powers of two (draft-ietf-opsawg-pcapng, 4.2): the
# fraction of a second is wrong, so that an ACK lies before its segment if a second ends between them.
#
# Expected: a segment at 0.9999 s and its ACK 200 us later, for any if_tsresol. Seen: convertTime()
# multiplies and divides the rest of a second by the integer quotients of 10^9 and the ticks per second.
# For 2^30 they are 1 and 1: ticks are read as ns, 7 % too many, and the ACK is 73.5 ms earlier than the
# segment. For 2^20 they are 953 and 1, 0.07 % too few, and the round trip is 0.9 ms. 10^9 is right.
# github.com/google/gopacket 1.1.19, from which the package was forked, has the same lines.
#
# Exit code 0: as seen with that version; 1: it behaves otherwise.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/main.go" <<'GO'
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
)

func block(kind uint32, body []byte) []byte {
	length := uint32(len(body) + 12)
	all := binary.LittleEndian.AppendUint32(nil, kind)
	all = binary.LittleEndian.AppendUint32(all, length)
	all = append(all, body...)
	return binary.LittleEndian.AppendUint32(all, length)
}

// A section, an interface of raw IP with `resolution`, and packets of 20 bytes at `ticks`.
func capture(resolution byte, ticks ...uint64) []byte {
	section := []byte{0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}
	clock := []byte{101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0}
	all := append(block(0x0a0d0d0a, section), block(1, clock)...)
	for _, tick := range ticks {
		packet := make([]byte, 40)
		binary.LittleEndian.PutUint32(packet[4:], uint32(tick>>32))
		binary.LittleEndian.PutUint32(packet[8:], uint32(tick))
		packet[12], packet[16], packet[20], packet[23] = 20, 20, 0x45, 20
		all = append(all, block(6, packet)...)
	}
	return all
}

func main() {
	for _, clock := range []struct {
		name       string
		resolution byte
		ticks      uint64
	}{{"10^9", 9, 1000000000}, {"2^20", 0x80 | 20, 1 << 20}, {"2^30", 0x80 | 30, 1 << 30}} {
		data, ack := clock.ticks*9999/10000, clock.ticks*10001/10000
		file := bytes.NewReader(capture(clock.resolution, data, ack))
		reader, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			panic(err)
		}
		_, first, _ := reader.ReadPacketData()
		_, second, err := reader.ReadPacketData()
		if err != nil {
			panic(err)
		}
		trip := second.Timestamp.Sub(first.Timestamp).Round(100 * time.Microsecond)
		fmt.Println(clock.name, trip)
	}
}
GO
cd "$work"
{
	go mod init clocks
	go get github.com/gopacket/gopacket/pcapgo@v1.7.7
} >go.log 2>&1 || {
	cat go.log >&2
	exit 1
}
seen=$(go run .)
echo 'gopacket 1.7.7: from a segment to its ACK, 200 us later, by ticks per second of the clock'
echo "$seen"
[ "$seen" = '10^9 200µs
2^20 900µs
2^30 -73.5ms' ] || {
	echo 'gopacket-base-two: this is not what version 1.7.7 did' >&2
	exit 1
}
