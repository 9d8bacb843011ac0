#!/bin/bash
# Two native DCTCP senders with the same RTT do not share a queue of Linux that marks, if they send
# super-segments: for as long as both send, the one that came first keeps several times the goodput of the
# other. RFC 8257 leads one to expect equal shares within some hundred round trips.
#
# A queueing discipline sees a super-segment (TSO, GSO) as one packet and marks all of it or nothing. A
# sender with a large window sends long ones, so the marks of a round trip are in fewer round trips, and
# DCTCP reduces once for each that has any. What has the larger window keeps it. With segments as the wire
# has them (`ethtool -K DEV tso off gso off` at the senders), the shares are equal.
#
# Seen with Linux 6.12.117 of Debian 13 (and 6.18.15) in QEMU without KVM, TBF at 40 Mbit/s with RED below
# it: 3.6 to 8.4 times with super-segments, 0.95 to 1.13 times without.
#
# Needs qemu-system-x86_64, a static busybox, ip, tc, ethtool, xz and apt. Takes two minutes, and no root.
# Exit code 0: seen again; 1: the behaviour has changed; 77: cannot be tried here.
set -eu
RELEASE=6.12.117+deb13-cloud-amd64
SUITE=trixie

skip() {
	echo "skipped: $*"
	exit 77
}

for tool in qemu-system-x86_64 busybox ip tc ethtool xz apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done
! ldd "$(command -v busybox)" >/dev/null 2>&1 || skip 'busybox is not static'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The kernel's package, by apt's own means and with lists of its own.
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/kernel"
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $SUITE main" \
	>"$work/sources.list"
of_suite=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o "Dir::State::status=$work/status"
	-o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none)
apt-get "${of_suite[@]}" -qq update || skip 'apt cannot read the lists of packages'
(cd "$work/kernel" && apt-get "${of_suite[@]}" -qq download "linux-image-$RELEASE") ||
	skip "$SUITE has no linux-image-$RELEASE any more"
dpkg-deb -x "$work"/kernel/*.deb "$work/kernel"

root=$work/root
mkdir -p "$root"/{bin,modules,dev,proc,sys,tmp,run}
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $(busybox --list); do
	case $applet in
	busybox | ip | tc) ;;
	*) ln -s busybox "$root/bin/$applet" ;;
	esac
done
for tool in ip tc ethtool; do
	cp "$(command -v $tool)" "$root/bin/"
done
ldd "$root"/bin/{ip,tc,ethtool} | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do
	mkdir -p "$root${library%/*}"
	cp -L "$library" "$root$library"
done
for module in llc stp bridge veth sch_tbf sch_red tcp_dctcp; do
	file=$(find "$work/kernel" -name "$module.ko*" | head -n 1)
	case $file in
	'') ;; # built in
	*.xz) xz -dc "$file" >"$root/modules/$module.ko" ;;
	*) cp "$file" "$root/modules/$module.ko" ;;
	esac
	echo "$module" >>"$root/modules/order"
done

cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
while read -r module; do
	[ ! -e "/modules/$module.ko" ] || insmod "/modules/$module.ko"
done </modules/order
# Not the applets.
ip() { /bin/ip "$@"; }
tc() { /bin/tc "$@"; }
ip link add bridge type bridge
ip link set bridge up
end() {
	ip netns add "$1"
	ip link add "$1" type veth peer name eth0 netns "$1"
	ip link set "$1" master bridge up
	ip -n "$1" link set eth0 up
	ip -n "$1" address add "$2/24" dev eth0
	ip netns exec "$1" sysctl -qw net.ipv4.tcp_ecn=1 net.ipv4.tcp_congestion_control=dctcp
}
sysctl -qw net.ipv4.tcp_allowed_congestion_control='reno cubic dctcp'
end first 10.0.0.1
end second 10.0.0.2
end sink 10.0.0.9
tc qdisc add dev sink root handle 1: tbf rate 40mbit burst 32k limit 2m
tc qdisc add dev sink parent 1:1 handle 10: red limit 1000000 min 30000 max 30001 avpkt 30000 burst 1 \
	probability 1 bandwidth 40mbit ecn
sent() { cat "/sys/class/net/$1/statistics/rx_bytes"; }
share() {
	port=$2
	for from in first second; do
		ip netns exec "$from" ethtool -K eth0 tso "$1" gso "$1"
		ip netns exec sink sh -c "exec nc -l -p $port <>/tmp/never >/dev/null" &
		sleep 1
		ip netns exec "$from" sh -c "exec nc 10.0.0.9 $port </dev/zero >/dev/null" &
		sleep 1
		port=$((port + 1))
	done
	sleep 3
	first=$(sent first) second=$(sent second)
	sleep 16
	echo "@ $1 $(($(sent first) - first)) $(($(sent second) - second))"
	killall nc
	sleep 1
}
mkfifo /tmp/never
share on 6000
share off 6010
tc -s qdisc show dev sink | grep marked
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null) >"$work/initrd"
timeout 400 qemu-system-x86_64 -machine q35 -accel tcg -cpu max,-erms,-fsrm -m 512M -nodefaults -display none \
	-no-reboot -serial stdio -kernel "$(find "$work/kernel" -name 'vmlinuz*' -type f | head -n 1)" \
	-initrd "$work/initrd" -append 'console=ttyS0 no_timer_check quiet loglevel=1 panic=-1' </dev/null 2>&1 |
	tr -d '\r' >"$work/log" || true
awk -v release="$RELEASE" '
	$1 == "@" && $3 > 0 && $4 > 0 { ratio[$2] = $3 / $4 }
	END {
		if (!("on" in ratio && "off" in ratio)) exit 77
		printf "Linux %s: the first sender had %.2f times the goodput of the second, with single segments %.2f\n",
			release, ratio["on"], ratio["off"]
		exit !(ratio["on"] > 2 && ratio["off"] > 0.6 && ratio["off"] < 1.6)
	}' "$work/log" || {
	status=$?
	[ $status != 77 ] || { tail -n 20 "$work/log" && skip 'the machine did not measure'; }
	echo 'changed: super-segments shared the queue, or single segments did not'
	exit 1
}
