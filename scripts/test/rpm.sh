#!/bin/bash
# Tests the RPM package and the archive of the operator's binary, from build to removal: `rpm.sh BINARY`.
set -eu
cd "$(dirname "$0")/../.."

. scripts/test/common.sh

begin "${1-}" rpmbuild rpm

# Little compression: it would take most of the time.
export RPM_PAYLOAD=w0.gzdio GZIP_LEVEL=1
rpm=$(packaged scripts/package-rpm.sh "$binary")
archive=$(packaged scripts/package-archive.sh "$binary")

make_root
# Nothing of this machine's own is mistaken for the package's.
rm -rf "$root"/{etc,usr/share,usr/local/share}/vcc "$root"/usr/{local/,}bin/vcc "$root"/usr/{local/,}share/doc/vcc
cp "$rpm" "$root/tmp/vcc.rpm"
tar --extract --gzip --file "$archive" --directory "$root/tmp"

installed() {
	(cd "$root" && find etc/vcc usr/{local/,}bin/vcc usr/{local/,}share/{vcc,doc/vcc,licenses/vcc} \
		usr/{local/,}share/man/man8/vcc* usr/{local/,}share/bash-completion/completions/vcc \
		usr/{local/,}share/{zsh/site-functions/_vcc,fish/vendor_completions.d/vcc.fish} \
		usr/{local/,}lib/systemd/system/vcc{,-domain@,-domain-device@}.service \
		etc/systemd/system/*/vcc.service 2>/dev/null) || true
}

expect_nothing() {
	[ -z "$(installed)" ] || fail "$1 leaves: $(installed)"
}

# used_by PREFIX: what is installed there works.
used() {
	[ "$(inside "$1/bin/vcc" --version)" = "$version" ] || fail "the command in $1 does not run"
	inside "$1/bin/vcc" policy check /etc/vcc/policy.toml >"$work/said" 2>&1 || fail "policy: $(cat "$work/said")"
	grep -q "^ExecStart=$1/bin/vcc run" "$root$1/lib/systemd/system/vcc.service" || fail "the unit does not start $1/bin/vcc"
	[ -s "$root$1/share/doc/vcc/docs/policy.md" ] || fail 'the documentation is missing'
	[ "$(stat -c %a:%u "$root$1/bin/vcc")" = 755:0 ] || fail 'the command has another mode or owner'
}

version=$("$binary" --version)
rpm() {
	# Of Debian's libraries, rpm knows nothing.
	inside rpm --nodeps "$@" >"$work/said" 2>&1 || fail "rpm $*: $(cat "$work/said")"
}

echo '-- the same files as the Debian package'
list() {
	sed -e 's|^\./||; s|^/||' -e '/\/$/d' -e '/^$/d' | grep -v -e '^usr/share/licenses/' -e '^usr/share/lintian/' \
		-e '^usr/share/doc/vcc/\(copyright\|changelog.*\|CHANGELOG.md\)$' -e '/_vcc$' | LC_ALL=C sort
}
inside rpm --query --package --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' /tmp/vcc.rpm |
	sed -n 's/^-[^ ]* //p' | list >"$work/rpm-files"
if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
	deb=$(DPKG_DEB_COMPRESSOR_TYPE=none scripts/package-deb.sh "$binary" "$work/once")
	dpkg-deb --fsys-tarfile "$deb" | tar --list | list >"$work/deb-files"
	diff "$work/deb-files" "$work/rpm-files" || fail 'the RPM package has other files than the Debian package'
fi

echo '-- install, update and remove the RPM package'
expect_nothing 'this machine'
rpm --install /tmp/vcc.rpm
used /usr
inside rpm --verify --nodeps vcc >"$work/said" 2>&1 || fail "rpm --verify: $(cat "$work/said")"
inside rpm --query --list vcc >"$work/all" || fail 'rpm --query'
grep -q '^/etc/vcc/policy.toml$' "$work/all" || fail 'the policy is not of the package'
echo '# changed' >>"$root/etc/vcc/policy.toml"
rpm --upgrade --force /tmp/vcc.rpm
grep -q '# changed' "$root/etc/vcc/policy.toml" || fail 'an update overwrites the policy'
rpm --erase vcc
grep -q '# changed' "$root/etc/vcc/policy.toml.rpmsave" || fail 'removal loses a changed policy'
rm -r "$root/etc/vcc"
expect_nothing 'removal of the RPM package'

echo '-- install, update and remove the archive'
top=/tmp/vcc-${version#vcc }
inside "$top/install.sh" install >"$work/said" 2>&1 || fail "$(cat "$work/said")"
used /usr/local
touch "$root/usr/local/share/vcc/old"
echo usr/local/share/vcc/old >>"$root/usr/local/share/vcc/installed"
LC_ALL=C sort -o "$root/usr/local/share/vcc/installed" "$root/usr/local/share/vcc/installed"
echo '# changed' >>"$root/etc/vcc/policy.toml"
inside "$top/install.sh" install >"$work/said" 2>&1 || fail "$(cat "$work/said")"
grep -q 'exists and is kept' "$work/said" || fail 'an update does not report the policy'
grep -q '# changed' "$root/etc/vcc/policy.toml" || fail 'an update overwrites the policy'
[ ! -e "$root/usr/local/share/vcc/old" ] || fail 'an update leaves files of the version before'
inside "$top/install.sh" uninstall >"$work/said" 2>&1 || fail "$(cat "$work/said")"
grep -q 'has been changed and is kept' "$work/said" || fail 'removal does not report the policy'
rm -r "$root/etc/vcc"
expect_nothing 'removal of the archive'
inside "$top/install.sh" install >"$work/said" 2>&1 || fail "$(cat "$work/said")"
inside "$top/install.sh" uninstall >"$work/said" 2>&1 || fail "$(cat "$work/said")"
expect_nothing 'removal of the archive with its own policy'
