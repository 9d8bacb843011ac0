#!/bin/sh
# tcpdump 4.99.3, tshark 4.0.17, tcptrace 6.6.7, and super-segments above 64 KiB (BIG TCP), whose IP length is 0
# (RFC 2675 for IPv6): each misses some, and says nothing, or blames the packet.
#
# Expected: 180000 bytes from each of three senders: IPv4 with total length 0; IPv6 with the jumbo option, as
# Linux 6.18 passes it to captures; and IPv6 with payload length 0 and no option, as Linux 7.2 does.
# Seen: tcpdump's filter `tcp` drops the segment with the option, because it follows no extension header
# but the fragment's. tcpdump prints no sequence numbers for the first and the last. tshark calls the
# last malformed, and reports that its ACK is for a segment that the capture missed. tcptrace reports that
# each sender sent 0 bytes.
#
# Exit code 0: as seen with these versions; 1: they behave otherwise.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - <<'PYTHON'
import struct

SYN, ACK = 2, 16
BYTES, START = 180000, 1700000000


def ip4(is_reply, tcp, data):
    ends = [b"\x0a\0\0\1", b"\x0a\0\0\2"]
    length = 0 if data else 20 + len(tcp)
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 6, 0)
    return header + ends[is_reply] + ends[not is_reply] + tcp


def ip6(is_reply, tcp, data, has_option):
    ends = [b"\xfd" + bytes(14) + b"\1", b"\xfd" + bytes(14) + b"\2"]
    option = struct.pack("!BBBBI", 6, 0, 0xC2, 4, 8 + len(tcp) + data) if data and has_option else b""
    length, following = 0 if data else len(tcp), 0 if option else 6
    header = struct.pack("!IHBB", 6 << 28, length, following, 64)
    return header + ends[is_reply] + ends[not is_reply] + option + tcp


def capture(name, ip):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1))
        for number, (is_reply, flags, sequence, ack, data) in enumerate([
            (0, SYN, 1000, 0, 0), (1, SYN | ACK, 5000, 1001, 0), (0, ACK, 1001, 5001, 0),
            (0, ACK, 1001, 5001, BYTES), (1, ACK, 5001, 1001 + BYTES, 0),
        ]):
            options = b"\2\4\5\xb4\3\3\12\1" if flags & SYN else b""
            ports = (80, 40000) if is_reply else (40000, 80)
            tcp = struct.pack("!HHII", *ports, sequence, ack)
            tcp += struct.pack("!BBHHH", (20 + len(options)) << 2, flags, 60000, 0, 0) + options
            packet = ip(is_reply, tcp, data)
            frame = bytes(12) + (b"\x08\0" if packet[0] == 0x45 else b"\x86\xdd") + packet
            size = len(frame), len(frame) + data
            file.write(struct.pack("<4I", START, number * 1000, *size) + frame)


capture("ip4.pcap", ip4)
capture("option.pcap", lambda *packet: ip6(*packet, True))
capture("bare.pcap", lambda *packet: ip6(*packet, False))
PYTHON
versions="$(tcpdump --version 2>&1 | head -n 1), $(tshark --version 2>/dev/null | head -n 1),
$(tcptrace -v 2>&1 | grep -o 'version [0-9.]*')"
seen=$(for name in ip4 option bare; do
	big='greater 65536'
	filtered=$(tcpdump -nr $name.pcap "tcp and $big" 2>/dev/null | wc -l)
	printed=$(tcpdump -nr $name.pcap "$big" 2>/dev/null | grep -c 'length 180000') || true
	shark=$(tshark -r $name.pcap -Y 'tcp.len == 180000' 2>/dev/null | wc -l)
	unseen=$(tshark -r $name.pcap -Y tcp.analysis.ack_lost_segment 2>/dev/null | wc -l)
	bytes=$(tcptrace -ln $name.pcap 2>/dev/null | awk '/unique bytes sent/ { print $4 }')
	echo "$name: filter $filtered, tcpdump $printed, tshark $shark, unseen $unseen, tcptrace $bytes"
done)
echo "$versions"
echo "$seen"
case $versions in *4.99.3*4.0.17*6.6.7*) ;; *) seen="other versions: $seen" ;; esac
[ "$seen" = 'ip4: filter 1, tcpdump 0, tshark 1, unseen 0, tcptrace 0
option: filter 0, tcpdump 1, tshark 1, unseen 0, tcptrace 0
bare: filter 1, tcpdump 0, tshark 0, unseen 1, tcptrace 0' ] || {
	echo 'bigtcp-readers: this is not what these versions did' >&2
	exit 1
}
