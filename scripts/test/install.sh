#!/bin/bash
# Tests `make install` and `make uninstall` of binaries in a directory: `install.sh BINARY`. Those of the lab and of
# guests are next to BINARY, as BINARY-lab and BINARY-guest.
set -eu
cd "$(dirname "$0")/../.."

fail() {
	echo "install: $*" >&2
	exit 1
}

VCC=$(realpath "${1:?no binary given: usage: install.sh BINARY}")
DESTDIR=$(mktemp -d)
PREFIX=/opt/vcc
VCC_LAB=$VCC-lab
VCC_GUEST=$VCC-guest
export VCC VCC_LAB VCC_GUEST DESTDIR PREFIX
trap 'rm -rf "$DESTDIR"' EXIT
policy=$DESTDIR/etc/vcc/policy.toml

scripts/install.sh install
for file in bin/vcc bin/vcc-lab share/man/man8/vcc-lab.8.gz share/man/man8/vcc-lab-run.8.gz \
	share/bash-completion/completions/vcc-lab share/zsh/site-functions/_vcc-lab \
	share/fish/vendor_completions.d/vcc-lab.fish share/man/man8/vcc.8.gz share/man/man8/vcc-attach.8.gz share/vcc/policy.schema.json \
	share/bash-completion/completions/vcc share/zsh/site-functions/_vcc \
	share/fish/vendor_completions.d/vcc.fish share/doc/vcc/README.md share/doc/vcc/docs/policy.md \
	share/vcc/prometheus/vcc.rules.yml share/vcc/grafana/vcc.json \
	bin/vcc-guest share/man/man8/vcc-guest.8.gz share/man/man8/vcc-guest-flood.8.gz \
	share/bash-completion/completions/vcc-guest share/doc/vcc-guest/vcc-guest.md; do
	[ -s "$DESTDIR$PREFIX/$file" ] || fail "$file is missing"
done
scripts/test/links.sh "$DESTDIR$PREFIX/share/doc/vcc" "$DESTDIR$PREFIX/share/doc/vcc-guest" ||
	fail 'pages have dead links'
"$DESTDIR$PREFIX/bin/vcc" policy check "$policy"
grep -q "^#:schema $PREFIX/share/vcc/policy.schema.json" "$policy" || fail "the policy's schema has another path"
for unit in packaging/*.service; do
	[ -e "$unit" ] || continue
	unit=$DESTDIR$PREFIX/lib/systemd/system/${unit##*/}
	grep -q "^ExecStart=$PREFIX/bin/vcc " "$unit" || fail 'the unit starts another vcc'
	page=$(sed -n 's/^Documentation=file://p' "$unit")
	[ -z "$page" ] || [ -s "$DESTDIR$page" ] || fail "the unit refers to $page, which is missing"
done
grep -q "runbook_url: file:$PREFIX/share/doc/vcc/docs/troubleshooting.md#" \
	"$DESTDIR$PREFIX/share/vcc/prometheus/vcc.rules.yml" || fail 'the alerts refer to another page'
unit=$DESTDIR$PREFIX/lib/systemd/system/vcc-guest.service
for line in "ExecStart=$PREFIX/bin/vcc-guest flood" "ExecStop=$PREFIX/bin/vcc-guest remove"; do
	grep -qx "$line" "$unit" || fail "the guests' unit lacks $line"
done
grep -q "file:$PREFIX/share/doc/vcc-guest/vcc-guest.md" "$unit" || fail "the guests' unit names another page"
unit=$DESTDIR$PREFIX/lib/systemd/system/vcc-guest-channel.service
grep -qx "ExecStart=$PREFIX/bin/vcc-guest flood --channel" "$unit" || fail "the channel's unit starts another command"
# DKMS compiles what the lab's kernels have.
module=$(echo "$DESTDIR$PREFIX"/src/vcc-flood-*)
for source in guest/kernel/tcp_flood.c guest/flood.h guest/flood_tcp.h; do
	cmp "$source" "$module/${source##*/}" || fail "the module has another $source"
done
# DKMS sets the kernel's release.
# shellcheck disable=SC1091,SC2034 # made by the installation
(kernelver=any && . "$module/dkms.conf" && [ "$module" = "$DESTDIR$PREFIX/src/$PACKAGE_NAME-$PACKAGE_VERSION" ]) ||
	fail "dkms.conf names another directory than $module"
# As DKMS calls it. There is no such kernel, but its directory has to be asked for.
said=$(make --directory "$module" KERNELRELEASE=any KERNEL=any 2>&1 || true)
case $said in
*' -C /lib/modules/any/build '*) ;;
*) fail "the module is not built with the kernel's headers: $said" ;;
esac
# systemd gives a unit's group its runtime directories, and a group of virtual machine monitors may not have that
# of the daemon's control socket.
owners=$(grep -lE '^RuntimeDirectory=(.* )?vcc( |$)' packaging/*.service)
[ "$owners" = packaging/vcc.service ] || fail "/run/vcc belongs to $owners"

echo '# changed' >>"$policy"
scripts/install.sh install
tail -n 1 "$policy" | grep -q changed || fail 'installing again overwrites the policy'
scripts/install.sh uninstall
left=$(cd "$DESTDIR" && find . -type f)
[ "$left" = ./etc/vcc/policy.toml ] || fail "files left after uninstall: $left"

# An unchanged policy is removed too.
rm "$policy"
scripts/install.sh install
scripts/install.sh uninstall
left=$(find "$DESTDIR" -type f)
[ -z "$left" ] || fail "files left after uninstall: $left"

# Each of the three alone.
VCC='' VCC_GUEST='' scripts/install.sh install
left=$(cd "$DESTDIR" && find . -type f -perm -100)
[ "$left" = ".$PREFIX/bin/vcc-lab" ] || fail "the lab alone installs $left"
scripts/install.sh uninstall
VCC_LAB='' VCC_GUEST='' scripts/install.sh install
left=$(find "$DESTDIR" -name '*vcc-lab*' -o -name vcc-guest -o -name 'vcc-guest[-.]*8.gz' -o -name 'vcc-flood*')
[ -z "$left" ] || fail "the operator's command alone installs $left"
scripts/install.sh uninstall
VCC='' VCC_LAB='' scripts/install.sh install
left=$(cd "$DESTDIR" && find . -type f -perm -100)
[ "$left" = ".$PREFIX/bin/vcc-guest" ] || fail "the guests' command alone installs $left"
scripts/install.sh uninstall
left=$(find "$DESTDIR" -type f)
[ -z "$left" ] || fail "files left after uninstall: $left"

complaint=$(VCC=/nowhere scripts/install.sh install 2>&1) && fail 'a missing binary is accepted'
case $complaint in *'make build'*) ;; *) fail "$complaint" ;; esac

# In place, what is registered with the kernel goes with its command.
root=$DESTDIR
in_place() {
	VCC='' VCC_LAB='' DESTDIR='' PREFIX=$root/prefix SYSCONFDIR=$root/etc scripts/install.sh "$1"
}
in_place install
cat >"$root/prefix/bin/vcc-guest" <<-END
	#!/bin/sh
	echo "\$*" >"$root/ran"
END
in_place uninstall
[ "$(cat "$root/ran")" = remove ] || fail 'uninstall leaves the congestion control registered'
