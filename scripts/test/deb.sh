#!/bin/bash
# Tests the Debian packages of binaries, from build to purge: `deb.sh BINARY`. Those of the lab and of guests are
# next to BINARY, as BINARY-lab and BINARY-guest.
set -eu
cd "$(dirname "$0")/../.."

. scripts/test/common.sh

begin "${1-}" dpkg-deb dpkg-shlibdeps

# Little compression: it would take most of the time.
export DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1
package=$(packaged scripts/package-deb.sh "$binary")
lab_package=$(packaged scripts/package-deb.sh "$binary-lab")
guest_package=$(packaged scripts/package-deb.sh "$binary-guest")

if command -v lintian >/dev/null; then
	# --allow-root: lintian warns when it runs as root.
	found=$(lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$package" "$lab_package" "$guest_package" 2>&1) ||
		fail "lintian: $found"
	[ -z "$found" ] || fail "lintian: $found"
else
	echo 'deb: lintian is not installed, continuing without'
fi

make_root
cp "$package" "$root/tmp/vcc.deb"
cp "$lab_package" "$root/tmp/vcc-lab.deb"
cp "$guest_package" "$root/tmp/vcc-guest.deb"

installed() {
	(cd "$root" && find etc/vcc usr/bin/vcc{,-lab,-guest} usr/share/vcc usr/share/doc/vcc{,-lab,-guest} \
		usr/share/man/man8/vcc* usr/src/vcc-flood-* run/vcc-guest \
		usr/share/bash-completion/completions/vcc{,-lab,-guest} \
		usr/share/zsh/vendor-completions/_vcc{,-lab,-guest} \
		usr/share/fish/vendor_completions.d/vcc{,-lab,-guest}.fish usr/share/lintian/overrides/vcc{,-lab,-guest} \
		usr/lib/systemd/system/vcc{,-guest}.service etc/systemd/system/*/vcc{,-guest}.service \
		etc/systemd/system/vcc{,-guest}.service var/lib/systemd/deb-systemd-helper-*/*vcc* \
		var/lib/dpkg/info/vcc{,-lab,-guest}.* 2>/dev/null) || true
}

expect_nothing() {
	local left
	left=$(installed)
	[ -z "$left" ] || fail "files left after $1: $left"
}

# check_pages FILE...: man pages in the root.
check_pages() {
	local page warned
	inside sh -c 'command -v man' >/dev/null || return 0
	for page; do
		page=${page#"$root"}
		warned=$(inside man --warnings -l "$page" 2>&1 >/dev/null)
		[ -z "$warned" ] || fail "$page: $warned"
	done
}

# Remove a vcc that is installed on this machine, and an empty /etc/vcc.
inside dpkg --purge vcc-lab vcc vcc-guest >/dev/null 2>&1 || true
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
scripts/test/links.sh "$root/usr/share/doc/vcc" || fail 'pages have dead links'
rules=$root/usr/share/vcc/prometheus/vcc.rules.yml
page=$(sed -n 's|.*runbook_url: file:\([^#]*\)#alerts$|\1|p' "$rules" | head -n 1)
[ -s "$root$page" ] || fail "the alerts refer to '$page', which is missing"
chart=$root/usr/share/doc/vcc/packaging/kubernetes/chart
diff -r packaging/kubernetes/chart "$chart" >"$work/said" || fail "the chart is not whole: $(cat "$work/said")"
inside dpkg --verify vcc | grep . && fail 'installed files differ from the package'
check_pages "$root"/usr/share/man/man8/vcc*.8.gz
! inside sh -c 'command -v man' >/dev/null || inside man -w vcc-attach >/dev/null || fail 'man cannot find vcc-attach'
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
check_pages "$root"/usr/share/man/man8/vcc-lab*.8.gz
inside bash -c 'set -eu; . /usr/share/bash-completion/completions/vcc-lab; complete -p vcc-lab' >/dev/null
inside dpkg --purge vcc-lab >"$work/said" 2>&1 || fail "$(cat "$work/said")"
left=$(installed | grep 'vcc-lab') && fail "files left after purge: $left"

echo '-- in a guest'
# Without vcc. It is not registered here: the kernel's names are global to the machine.
inside dpkg --install /tmp/vcc-guest.deb >"$work/said" 2>&1 || fail "$(cat "$work/said")"
[ "$(inside vcc-guest --version)" = "vcc-guest ${version%-*}" ] || fail 'vcc-guest --version'
inside vcc-guest status | grep -q '^flood: not registered$' || fail "vcc-guest status: $(inside vcc-guest status)"
inside dpkg --verify vcc-guest | grep . && fail 'installed files differ from the package'
for file in copyright changelog.gz changelog.Debian.gz vcc-guest.md; do
	[ -s "$root/usr/share/doc/vcc-guest/$file" ] || fail "vcc-guest has no $file"
done
check_pages "$root"/usr/share/man/man8/vcc-guest*.8.gz
inside bash -c 'set -eu; . /usr/share/bash-completion/completions/vcc-guest; complete -p vcc-guest' >/dev/null
grep -qx "PACKAGE_VERSION=\"${version%-*}\"" "$root/usr/src/vcc-flood-${version%-*}/dkms.conf" ||
	fail 'dkms.conf has another version'
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/vcc-guest.service" ] || fail "the guests' unit is enabled"
if inside sh -c 'command -v systemd-analyze' >/dev/null; then
	inside systemd-analyze verify vcc-guest.service vcc-guest-channel.service ||
		fail "systemd-analyze rejects the guests' units"
fi
default=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
inside dpkg --remove vcc-guest >"$work/said" 2>&1 || fail "$(cat "$work/said")"
! grep -q 'may still be flood' "$work/said" || fail "$(cat "$work/said")"
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = "$default" ] || fail 'remove changes the default'
inside dpkg --purge vcc-guest >"$work/said" 2>&1 || fail "$(cat "$work/said")"
left=$(installed | grep -e vcc-guest -e vcc-flood | grep -v -e /doc/vcc/ -e vcc-guests) && fail "files left after purge: $left"

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
# A fake systemctl that runs no services, but records which should be running.
running=$root/run/vcc-is-running guest_running=$root/run/vcc-guest-is-running
mkdir -p "$root/run/systemd/system"
cat >"$work/systemctl" <<'END'
#!/bin/sh
case " $* " in
*' vcc-guest.service '*) unit=vcc-guest ;;
*' vcc-guest-channel.service '*) unit=vcc-guest-channel ;;
*) unit=vcc ;;
esac
case " $* " in
*' is-enabled '*) [ -L /etc/systemd/system/multi-user.target.wants/$unit.service ] && echo enabled ;;
*' is-active '*) [ -e /run/$unit-is-running ] ;;
*' start '* | *' restart '*) echo "$*" >/run/$unit-is-running ;;
*' try-restart '*) [ ! -e /run/$unit-is-running ] || echo "$*" >/run/$unit-is-running ;;
*' stop '*) rm -f /run/$unit-is-running ;;
# Links, which need no running systemd.
*' preset '* | *' enable '* | *' disable '*) SYSTEMD_OFFLINE=1 exec /usr/bin/systemctl.real "$@" ;;
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

package --install /tmp/vcc-guest.deb
[ ! -e "$guest_running" ] || fail "install starts the guests' unit"
inside systemctl enable vcc-guest.service 2>"$work/said" || fail "$(cat "$work/said")"
inside systemctl start vcc-guest.service
package --install /tmp/vcc-guest.deb
grep -q try-restart "$guest_running" || fail "an upgrade does not restart the guests' unit"
package --remove vcc-guest
[ ! -e "$guest_running" ] || fail "remove does not stop the guests' unit"
package --install /tmp/vcc-guest.deb
[ -L "$root/etc/systemd/system/multi-user.target.wants/vcc-guest.service" ] ||
	fail "installing a removed package disables the guests' unit"
package --purge vcc-guest
expect_nothing 'purge of what is for guests, with systemd'
