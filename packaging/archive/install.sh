#!/bin/sh
# Installs what is in this archive, or removes it: `install.sh install|uninstall`, as root.
#
#   DESTDIR  another root directory
#
# A policy that is there is kept, and so is one that was changed when the rest is removed. The daemon is not
# started: `systemctl enable --now vcc`.
set -eu
cd "$(dirname "$0")"
DESTDIR=${DESTDIR:-}
policy=etc/vcc/policy.toml
list=$DESTDIR/usr/local/share/vcc/installed

fail() {
	echo "install: $*" >&2
	exit 1
}

reload() {
	if [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload || true
	fi
}

case "${1:-}" in
install)
	find files -type f | LC_ALL=C sort | while read -r file; do
		target=${file#files/}
		if [ "$target" = "$policy" ] && [ -e "$DESTDIR/$policy" ]; then
			echo "install: $DESTDIR/$policy exists and is kept"
			continue
		fi
		mode=644
		[ ! -x "$file" ] || mode=755
		install -D -m "$mode" "$file" "$DESTDIR/$target" || fail "cannot write $DESTDIR/$target (as root?)"
	done
	# What an earlier version had, and this one does not, goes.
	(cd files && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$list.new"
	if [ -e "$list" ]; then
		LC_ALL=C comm -23 "$list" "$list.new" | while read -r file; do rm -f "$DESTDIR/$file"; done
	fi
	mv "$list.new" "$list"
	reload
	;;
uninstall)
	[ -e "$list" ] || fail "$list is missing: nothing of this archive is installed"
	if [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now vcc.service || true
	fi
	while read -r file; do
		if [ "$file" = "$policy" ] && [ -e "$DESTDIR/$policy" ] && ! cmp -s "files/$policy" "$DESTDIR/$policy"; then
			echo "uninstall: $DESTDIR/$policy has been changed and is kept"
			continue
		fi
		rm -f "$DESTDIR/$file"
	done <"$list"
	rm -f "$list"
	# Directories that are vcc's alone.
	for directory in usr/local/share/vcc usr/local/share/doc/vcc etc/vcc; do
		[ ! -d "$DESTDIR/$directory" ] || find "$DESTDIR/$directory" -depth -type d -empty -delete
	done
	reload
	echo 'uninstall: vcc stays attached to guests until /sys/fs/bpf/vcc is removed'
	;;
*) fail "unknown action '${1:-}': usage: install.sh install|uninstall" ;;
esac
