#!/bin/bash
# Tests the Debian packages of binaries, from build to purge: `deb.sh BINARY`. That of the lab is next to
# BINARY, as BINARY-lab. Exit code 77 means skipped, for the reason in the last line.
#
# dpkg installs the packages on this machine's system under a temporary overlay, in namespaces with a
# BPF file system of their own.
set -eu
cd "$(dirname "$0")/../.."

fail() {
	echo "deb: $*" >&2
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

binary=$(realpath "${1:?no binary given: usage: deb.sh BINARY}")
[ "$(id -u)" -eq 0 ] || skip 'overlays and chroots need root'
for tool in dpkg-deb dpkg-shlibdeps unshare; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done

# Restart in new namespaces.
if [ "${VCC_IN_NAMESPACE-}" = '' ]; then
	VCC_IN_NAMESPACE=yes exec unshare --mount --net --pid --fork --propagation private "$0" "$@"
fi

work=$(mktemp -d)
mount -t tmpfs -o size=512m tmpfs "$work"
mkdir "$work"/{once,again,upper,below,root}
# shellcheck disable=SC2317 # called by trap
leave() {
	umount --recursive "$work" 2>/dev/null || umount --lazy "$work"
	rmdir "$work"
}
trap leave EXIT

# No compression: it would take most of the time.
export DPKG_DEB_COMPRESSOR_LEVEL=0
make() {
	local package again
	package=$(scripts/package-deb.sh "$1" "$work/once")
	# Reproducible: another time zone, locale and umask give the same bytes.
	again=$(TZ=Asia/Tokyo LC_ALL=C.UTF-8 bash -c 'umask 077; exec scripts/package-deb.sh "$@"' - "$1" "$work/again")
	cmp "$package" "$again" || fail 'two runs give different packages'
	echo "$package"
}
package=$(make "$binary")
lab_package=$(make "$binary-lab")

if command -v lintian >/dev/null; then
	# --allow-root: lintian warns when it runs as root.
	found=$(lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$package" "$lab_package" 2>&1) ||
		fail "lintian: $found"
	[ -z "$found" ] || fail "lintian: $found"
else
	echo 'deb: lintian is not installed, continuing without'
fi

root=$work/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/below" "$root" 2>/dev/null ||
	skip 'the overlay file system is not available'
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t bpf bpf "$root/sys/fs/bpf"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
cp "$package" "$root/tmp/vcc.deb"
cp "$lab_package" "$root/tmp/vcc-lab.deb"

inside() {
	chroot "$root" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

installed() {
	(cd "$root" && find etc/vcc usr/bin/vcc usr/bin/vcc-lab usr/share/vcc usr/share/doc/vcc usr/share/doc/vcc-lab usr/share/man/man8/vcc* \
		usr/share/bash-completion/completions/vcc{,-lab} usr/share/zsh/vendor-completions/_vcc{,-lab} \
		usr/share/fish/vendor_completions.d/vcc{,-lab}.fish usr/share/lintian/overrides/vcc{,-lab} \
		usr/lib/systemd/system/vcc.service etc/systemd/system/*/vcc.service \
		etc/systemd/system/vcc.service var/lib/systemd/deb-systemd-helper-*/*vcc* \
		var/lib/dpkg/info/vcc{,-lab}.* 2>/dev/null) || true
}

expect_nothing() {
	local left
	left=$(installed)
	[ -z "$left" ] || fail "files left after $1: $left"
}

# Remove a vcc that is installed on this machine, and an empty /etc/vcc.
inside dpkg --purge vcc-lab vcc >/dev/null 2>&1 || true
inside rmdir /etc/vcc 2>/dev/null || true
expect_nothing 'removing the installed vcc'

echo '-- install'
inside dpkg --force-depends --install /tmp/vcc.deb >"$work/said" 2>&1 || fail "$(cat "$work/said")"
! grep -i 'depends on' "$work/said" || fail 'dependencies are missing: scripts/install-deps.sh test'
version=$(dpkg-deb --field "$package" Version)
[ "$(inside vcc --version)" = "vcc ${version%-*}" ] || fail 'vcc --version'
inside vcc policy check /etc/vcc/policy.toml
inside vcc policy show /etc/vcc/policy.toml | grep -q shadow || fail 'the default policy enforces'
schema=$(sed -n '1s/^#:schema //p' "$root/etc/vcc/policy.toml")
[ -s "$root$schema" ] || fail "the policy's schema $schema is missing"
page=$(grep -o '/usr/share/[^ ]*\.md' "$root/etc/vcc/policy.toml")
[ -s "$root$page" ] || fail "the policy refers to '$page', which is missing"
inside dpkg --verify vcc | grep . && fail 'installed files differ from the package'
if inside sh -c 'command -v man' >/dev/null; then
	for page in "$root"/usr/share/man/man8/vcc*.8.gz; do
		page=${page#"$root"}
		warned=$(inside man --warnings -l "$page" 2>&1 >/dev/null)
		[ -z "$warned" ] || fail "$page: $warned"
	done
	inside man -w vcc-attach >/dev/null || fail 'man cannot find vcc-attach'
fi
inside bash -c 'set -eu; . /usr/share/bash-completion/completions/vcc; complete -p vcc' >/dev/null
unit=$root/usr/lib/systemd/system/vcc.service
if [ -e "$unit" ]; then
	[ -L "$root/etc/systemd/system/multi-user.target.wants/vcc.service" ] || fail 'the unit is not enabled'
	if inside sh -c 'command -v systemd-analyze' >/dev/null; then
		inside systemd-analyze verify vcc.service || fail 'systemd-analyze rejects the unit'
	fi
fi

echo '-- the lab'
# It needs vcc, of the same version.
inside dpkg --install /tmp/vcc-lab.deb >"$work/said" 2>&1 || fail "$(cat "$work/said")"
[ "$(inside vcc-lab --version)" = "vcc-lab ${version%-*}" ] || fail 'vcc-lab --version'
inside vcc-lab list | grep -q '^vcc-fig11 ' || fail 'vcc-lab lists no experiments'
inside dpkg --verify vcc-lab | grep . && fail 'installed files differ from the package'
[ -s "$root/usr/share/doc/vcc-lab/copyright" ] || fail 'vcc-lab has no copyright'
if inside sh -c 'command -v man' >/dev/null; then
	for page in "$root"/usr/share/man/man8/vcc-lab*.8.gz; do
		page=${page#"$root"}
		warned=$(inside man --warnings -l "$page" 2>&1 >/dev/null)
		[ -z "$warned" ] || fail "$page: $warned"
	done
fi
inside bash -c 'set -eu; . /usr/share/bash-completion/completions/vcc-lab; complete -p vcc-lab' >/dev/null
inside dpkg --purge vcc-lab >"$work/said" 2>&1 || fail "$(cat "$work/said")"
left=$(installed | grep 'vcc-lab') && fail "files left after purge: $left"

echo '-- attach, then remove'
can_attach=
if inside vcc doctor >/dev/null 2>&1 || [ -d "$root/sys/kernel/btf" ]; then
	can_attach=yes
	ip link add veth-deb type veth peer name veth-guest
	inside vcc attach veth-deb --mode shadow >/dev/null || fail 'vcc attach'
fi
echo '# changed' >>"$root/etc/vcc/policy.toml"
inside dpkg --install /tmp/vcc.deb >"$work/said" 2>&1 || fail "upgrade: $(cat "$work/said")"
grep -q '# changed' "$root/etc/vcc/policy.toml" || fail 'an upgrade overwrites the policy'
inside dpkg --remove vcc >"$work/said" 2>&1 || fail "$(cat "$work/said")"
[ ! -e "$root/usr/bin/vcc" ] || fail 'remove leaves the binary'
grep -q '# changed' "$root/etc/vcc/policy.toml" || fail 'remove deletes the policy'
if [ "$can_attach" ]; then
	[ -n "$(ls "$root/sys/fs/bpf/vcc")" ] || fail 'remove detaches'
	grep -q 'stays attached' "$work/said" || fail "remove does not report attached programs: $(cat "$work/said")"
fi

echo '-- purge'
inside dpkg --purge vcc >"$work/said" 2>&1 || fail "$(cat "$work/said")"
expect_nothing purge
[ ! -e "$root/sys/fs/bpf/vcc" ] || fail 'purge leaves pins'
[ ! -e "$root/run/vcc" ] || fail 'purge leaves /run/vcc'

[ -x "$root/usr/bin/systemctl" ] || exit 0

echo '-- with systemd'
# A fake systemctl that runs no services, but records whether vcc.service should be running.
running=$root/run/vcc-is-running
mkdir -p "$root/run/systemd/system"
cat >"$work/systemctl" <<'END'
#!/bin/sh
case " $* " in
*' is-enabled '*) [ -L /etc/systemd/system/multi-user.target.wants/vcc.service ] && echo enabled ;;
*' is-active '*) [ -e /run/vcc-is-running ] ;;
*' start '* | *' restart '*) echo "$*" >/run/vcc-is-running ;;
*' try-restart '*) [ ! -e /run/vcc-is-running ] || echo "$*" >/run/vcc-is-running ;;
*' stop '*) rm -f /run/vcc-is-running ;;
# Links, which need no running systemd.
*' preset '* | *' disable '*) SYSTEMD_OFFLINE=1 exec /usr/bin/systemctl.real "$@" ;;
esac
END
mv "$root/usr/bin/systemctl" "$root/usr/bin/systemctl.real"
install -m 755 "$work/systemctl" "$root/usr/bin/systemctl"
printf '#!/bin/sh\n' >"$work/policy-rc.d"
install -m 755 "$work/policy-rc.d" "$root/usr/sbin/policy-rc.d"
package() {
	inside dpkg --force-depends "$@" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
}
package --install /tmp/vcc.deb
[ -e "$running" ] || fail 'install does not start the daemon'
package --install /tmp/vcc.deb
grep -q restart "$running" || fail 'an upgrade does not restart the daemon'
package --remove vcc
[ ! -e "$running" ] || fail 'remove does not stop the daemon'
# dpkg passes the version that was installed before, as in an upgrade.
package --install /tmp/vcc.deb
[ -e "$running" ] || fail 'installing a removed package does not start the daemon'
inside systemctl disable vcc.service 2>"$work/said" || fail "$(cat "$work/said")"
inside systemctl stop vcc.service
package --install /tmp/vcc.deb
[ ! -e "$running" ] || fail 'an upgrade starts a disabled daemon'
package --purge vcc
expect_nothing 'purge with systemd'
