#!/bin/bash
# Tests `make install` and `make uninstall` of binaries in a directory: `install.sh BINARY`. That of the lab is
# next to BINARY, as BINARY-lab.
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
export VCC VCC_LAB DESTDIR PREFIX
trap 'rm -rf "$DESTDIR"' EXIT
policy=$DESTDIR/etc/vcc/policy.toml

scripts/install.sh install
for file in bin/vcc bin/vcc-lab share/man/man8/vcc-lab.8.gz share/man/man8/vcc-lab-run.8.gz \
	share/bash-completion/completions/vcc-lab share/zsh/site-functions/_vcc-lab \
	share/fish/vendor_completions.d/vcc-lab.fish share/man/man8/vcc.8.gz share/man/man8/vcc-attach.8.gz share/vcc/policy.schema.json \
	share/bash-completion/completions/vcc share/zsh/site-functions/_vcc \
	share/fish/vendor_completions.d/vcc.fish share/doc/vcc/README.md share/doc/vcc/docs/policy.md; do
	[ -s "$DESTDIR$PREFIX/$file" ] || fail "$file is missing"
done
"$DESTDIR$PREFIX/bin/vcc" policy check "$policy"
grep -q "^#:schema $PREFIX/share/vcc/policy.schema.json" "$policy" || fail "the policy's schema has another path"
for unit in packaging/*.service; do
	[ -e "$unit" ] || continue
	unit=$DESTDIR$PREFIX/lib/systemd/system/${unit##*/}
	grep -q "^ExecStart=$PREFIX/bin/vcc " "$unit" || fail 'the unit starts another vcc'
	page=$(sed -n 's/^Documentation=file://p' "$unit")
	[ -z "$page" ] || [ -s "$DESTDIR$page" ] || fail "the unit refers to $page, which is missing"
done
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

# Each of the two alone.
VCC='' scripts/install.sh install
left=$(cd "$DESTDIR" && find . -type f -perm -100)
[ "$left" = ".$PREFIX/bin/vcc-lab" ] || fail "the lab alone installs $left"
scripts/install.sh uninstall
VCC_LAB='' scripts/install.sh install
left=$(find "$DESTDIR" -name '*vcc-lab*')
[ -z "$left" ] || fail "the operator's command alone installs $left"
scripts/install.sh uninstall

complaint=$(VCC=/nowhere scripts/install.sh install 2>&1) && fail 'a missing binary is accepted'
case $complaint in *'make build'*) ;; *) fail "$complaint" ;; esac
