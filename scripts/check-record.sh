#!/bin/bash
# Whether other programs read what `vcc record` writes: the interface, the time and both lengths of each
# packet, as tshark has them.
#
#   check-record.sh VCC
#
# Records transfers in network namespaces of its own: both sides of a port with all bytes, and the fabric's
# side with 128 bytes of each packet, which has the one interface that dpkt takes. Needs root, tshark,
# tcpdump and Python; scapy and dpkt are installed by pip into a temporary directory, and gopacket is built
# there if there is Go. Zeek sums up the connection if it is installed.
set -eu
vcc=$(realpath "$1")
for tool in tshark tcpdump python3; do
	command -v "$tool" >/dev/null || {
		echo "check-record: $tool is missing: scripts/install-deps.sh verify" >&2
		exit 1
	}
done
if [ -z "${RECORD_IN-}" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	python3 -m venv "$work/venv"
	"$work/venv/bin/pip" install --quiet --disable-pip-version-check scapy==2.6.1 dpkt==1.9.8
	if command -v go >/dev/null; then
		mkdir "$work/gopacket"
		cat >"$work/gopacket/reader.go" <<'GO'
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket/pcapgo"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	file, err := os.Open(os.Args[1])
	must(err)
	reader, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	must(err)
	for {
		_, info, err := reader.ReadPacketData()
		if err == io.EOF {
			return
		}
		must(err)
		at, err := reader.Interface(info.InterfaceIndex)
		must(err)
		fmt.Printf("%s\t%d\t%d\t%d\n", at.Name, info.Timestamp.UnixNano(), info.Length, info.CaptureLength)
	}
}
GO
		(
			cd "$work/gopacket"
			export GOPATH="$work/go" GOFLAGS=-modcacherw
			go mod init reader
			go get github.com/gopacket/gopacket/pcapgo@v1.7.7
			go build -o reader .
		) >"$work/go.said" 2>&1 || {
			cat "$work/go.said" >&2
			exit 1
		}
	fi
	RECORD_IN=$work unshare --mount --net --pid --fork --kill-child --propagation private "$0" "$vcc"
	exit
fi
cd "$RECORD_IN"
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip netns add guest
ip link add port type veth peer name eth0 netns guest
ip address add 192.0.2.1/24 dev port
ip -n guest address add 192.0.2.2/24 dev eth0
ip link set port up
ip -n guest link set eth0 up
cat >peer.py <<'PYTHON'
import socket

listener = socket.create_server(("192.0.2.1", 5001))
while True:
    connection, _ = listener.accept()
    while connection.recv(1 << 16):
        pass
    connection.sendall(bytes(2_000_000))
    connection.close()
PYTHON
cat >guest.py <<'PYTHON'
import socket

connection = socket.create_connection(("192.0.2.1", 5001))
connection.sendall(bytes(2_000_000))
connection.shutdown(socket.SHUT_WR)
received = 0
while data := connection.recv(1 << 16):
    received += len(data)
assert received == 2_000_000, received
PYTHON
"$vcc" attach port >attached
# It ends with this process, whose PID namespace it is in.
python3 peer.py &
sleep 1

# record NAME OPTION...: a transfer in NAME.pcapng.
record() {
	local name=$1 recorder
	shift
	"$vcc" record port --buffer-mib 64 --output "$name.pcapng" "$@" >"$name.said" 2>&1 &
	recorder=$!
	for _ in $(seq 100); do
		[ "$(stat -c %s "$name.pcapng" 2>/dev/null || echo 0)" -lt 100 ] || break
		sleep 0.1
	done
	ip netns exec guest python3 guest.py
	kill -INT "$recorder"
	wait "$recorder"
	cat "$name.said"
	! grep missing "$name.said"
}
record both
record one --side fabric --snaplen 128
"$vcc" read --both both.pcapng >compared
grep '^Payload: .* all equal' compared

# Each reader writes a line for each packet: interface, ns since 1970, length, bytes kept; - where it has none.
cat >reader.py <<'PYTHON'
import sys

library, path = sys.argv[1:]
if library == "scapy":
    from scapy.utils import RawPcapNgReader

    for data, meta in RawPcapNgReader(path):
        ns = ((meta.tshigh << 32) + meta.tslow) * 10**9 // meta.tsresol
        name = meta.ifname.decode() if isinstance(meta.ifname, bytes) else meta.ifname
        print(name, ns, meta.wirelen, len(data), sep="\t")
else:
    import dpkt

    # Times are floats, with steps of 238 ns.
    with open(path, "rb") as file:
        for _, data in dpkt.pcapng.Reader(file):
            print("-", "-", "-", len(data), sep="\t")
PYTHON
# packets FILE READER
packets() {
	case $2 in
	tshark)
		tshark -r "$1" -T fields -e frame.interface_name -e frame.time_epoch -e frame.len -e frame.cap_len \
			2>/dev/null | tr -d .
		;;
	tcpdump)
		tcpdump -nn -tt --time-stamp-precision nano -e -r "$1" 2>/dev/null |
			sed -E 's/^([0-9]+)\.([0-9]+) .*ethertype [^,]*, length ([0-9]+): .*/-\t\1\2\t\3\t-/'
		;;
	gopacket) gopacket/reader "$1" ;;
	*) venv/bin/python reader.py "$2" "$1" ;;
	esac
}

# compare NAME READER FIELDS: those fields of each packet, as tshark has them.
compare() {
	packets "$1.pcapng" tshark | cut -f "$3" >expected
	packets "$1.pcapng" "$2" | cut -f "$3" >seen
	cmp -s expected seen || {
		echo "check-record: $2 reads $1.pcapng otherwise than tshark (<):" >&2
		diff expected seen | head -6 >&2
		return 1
	}
	echo "$2: $(wc -l <seen) packets of $1.pcapng as tshark has them"
	[[ " $readers " == *" $2 "* ]] || readers+=" $2"
}
failed=0
readers=
for name in both one; do
	compare $name tcpdump 2,3 || failed=1
	compare $name scapy 1,2,3,4 || failed=1
done
compare one dpkt 4 || failed=1
if [ -x gopacket/reader ]; then
	for name in both one; do
		compare $name gopacket 1,2,3,4 || failed=1
	done
fi
if command -v zeek >/dev/null; then
	zeek -C -r one.pcapng >zeek.said
	bytes=$(awk '$1 !~ /^#/ { print $10, $11 }' conn.log)
	echo "zeek: $bytes bytes from the guest and to it"
	[ "$bytes" = '2000000 2000000' ] || failed=1
	readers+=' zeek'
fi
[ "$failed" != 0 ] || echo "figure: $(packets both.pcapng tshark | wc -l) packets of both sides, read alike by tshark$readers"
exit "$failed"
