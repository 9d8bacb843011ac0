#!/bin/sh
# Installs or removes vcc with its pages, units and policy, the lab's command, and what is for guests:
# `install.sh install|uninstall`. The Debian packages consist of the same files.
#
#   VCC      the operator's binary to install
#   VCC_LAB  the lab's binary to install
#   VCC_GUEST  the guests' binary to install; one of the three is enough
#   VCC_HERE  for binaries of another architecture: a directory with those of the same sources that run here
#   PREFIX   default: /usr/local
#   SYSCONFDIR  default: /etc
#   DESTDIR  a root directory to install into, for packages
#   ZSH_COMPLETIONS  default: PREFIX/share/zsh/site-functions
set -eu
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local}
SYSCONFDIR=${SYSCONFDIR:-/etc}
DESTDIR=${DESTDIR:-}
share=$PREFIX/share
zsh=${ZSH_COMPLETIONS:-$share/zsh/site-functions}
man=$share/man/man8
doc=$share/doc/vcc
units=$PREFIX/lib/systemd/system
policy=$SYSCONFDIR/vcc/policy.toml

fail() {
	echo "install: $*" >&2
	exit 1
}

# put MODE SOURCE TARGET
put() {
	install -D -m "$1" "$2" "$DESTDIR$3" || fail "cannot write $DESTDIR$3 (as root?)"
}

# The default policy, with the installed paths of its schema and its reference.
installed_policy() {
	sed -e "1s|^#:schema .*|#:schema $share/vcc/policy.schema.json|" \
		-e "s|docs/policy\.md|$doc/docs/policy.md|" packaging/policy.toml
}

# unlink_dead DIRECTORY: of links in the pages below it, those to files that are not installed become text.
unlink_dead() {
	find "$DESTDIR$1" -type f -name '*.md' | while read -r page; do
		# The whole page is one record, because a link may go over the end of a line.
		awk -v directory="${page%/*}" '
			BEGIN { RS = "\001"; ORS = "" }
			function leads(file) {
				if (!(file in known))
					known[file] = system("test -e \"" directory "/" file "\"") == 0
				return known[file]
			}
			function linked(text, at, done, file, link, target) {
				done = ""
				while (match(text, /\[[^][]*\]\([A-Za-z0-9_.\/#-]*\)/)) {
					link = substr(text, RSTART, RLENGTH)
					done = done substr(text, 1, RSTART - 1)
					text = substr(text, RSTART + RLENGTH)
					at = index(link, "](")
					target = substr(link, at + 2, length(link) - at - 2)
					file = target
					sub(/#.*/, "", file)
					# Without a dot or a slash, it is code; but for LICENSE.
					if (file !~ /[.\/]|^[A-Z]+$/ || leads(file))
						done = done link
					else
						done = done substr(link, 2, at - 2)
				}
				return done text
			}
			{
				parts = split($0, part, /```/)
				for (i = 1; i <= parts; i++)
					print (i > 1 ? "```" : "") (i % 2 ? linked(part[i]) : part[i])
			}' "$page" >"$work/page"
		cat "$work/page" >"$page"
	done
}

# install_command NAME BINARY: with its man pages and completions.
install_command() {
	put 755 "$2" "$PREFIX/bin/$1"
	here=${VCC_HERE:+$VCC_HERE/$1}
	own=$work/$1
	"${here:-$2}" generate man "$own/man"
	for page in "$own"/man/*.8; do
		# -n: no name and no time, for reproducible files.
		gzip -9n "$page"
		put 644 "$page.gz" "$man/${page##*/}.gz"
	done
	"${here:-$2}" generate completions "$own/completions"
	put 644 "$own/completions/$1.bash" "$share/bash-completion/completions/$1"
	put 644 "$own/completions/_$1" "$zsh/_$1"
	put 644 "$own/completions/$1.fish" "$share/fish/vendor_completions.d/$1.fish"
}

install_all() {
	[ -n "${VCC:-}${VCC_LAB:-}${VCC_GUEST:-}" ] ||
		fail 'nothing to install: make build, then set VCC, VCC_LAB or VCC_GUEST to the binaries'
	for binary in "${VCC:-}" "${VCC_LAB:-}" "${VCC_GUEST:-}"; do
		[ -z "$binary" ] || [ -x "$binary" ] || fail "$binary is no binary: make build"
	done
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	[ -z "${VCC_LAB:-}" ] || install_command vcc-lab "$VCC_LAB"
	[ -z "${VCC_GUEST:-}" ] || install_guest
	[ -z "${VCC:-}" ] || install_operator
}

# put_unit FILE DOCUMENTATION: with the installed paths of binaries and of its page.
put_unit() {
	sed -e "s|^\(Exec[A-Za-z]*\)=/usr/local/bin/vcc|\1=$PREFIX/bin/vcc|" \
		-e "/^Documentation=/s|file:.*/|file:$2/|" "$1" >"$work/unit"
	put 644 "$work/unit" "$units/${1##*/}"
}

# The guests' command, its unit, and the source of the module for DKMS.
install_guest() {
	install_command vcc-guest "$VCC_GUEST"
	own_doc=$share/doc/vcc-guest
	for unit in packaging/guest/*.service; do
		put_unit "$unit" "$own_doc"
	done
	put 644 docs/vcc-guest.md "$own_doc/vcc-guest.md"
	put 644 CHANGELOG.md "$own_doc/CHANGELOG.md"
	unlink_dead "$own_doc"
	version=$("${here:-$VCC_GUEST}" --version | cut -d ' ' -f 2)
	module=$PREFIX/src/vcc-flood-$version
	sed "s|@VERSION@|$version|" packaging/dkms/dkms.conf >"$work/dkms.conf"
	put 644 "$work/dkms.conf" "$module/dkms.conf"
	for source in packaging/dkms/Makefile guest/kernel/tcp_flood.c guest/flood_tcp.h guest/flood.h; do
		put 644 "$source" "$module/${source##*/}"
	done
}

# The operator's command, and all that belongs to it.
install_operator() {
	install_command vcc "$VCC"

	for unit in packaging/*.service; do
		[ ! -e "$unit" ] || put_unit "$unit" "$doc/docs"
	done

	installed_policy >"$work/policy.toml"
	if [ -e "$DESTDIR$policy" ]; then
		echo "install: $DESTDIR$policy exists and is kept"
	else
		put 644 "$work/policy.toml" "$policy"
	fi

	put 644 docs/policy.schema.json "$share/vcc/policy.schema.json"
	for dashboard in packaging/grafana/*.json; do
		[ ! -e "$dashboard" ] || put 644 "$dashboard" "$share/vcc/grafana/${dashboard##*/}"
	done

	sed "s|file:/usr/share/doc/vcc/|file:$doc/|; s|/usr/share/vcc/|$share/vcc/|" \
		packaging/prometheus/vcc.rules.yml >"$work/vcc.rules.yml"
	put 644 "$work/vcc.rules.yml" "$share/vcc/prometheus/vcc.rules.yml"

	put 644 README.md "$doc/README.md"
	put 644 CHANGELOG.md "$doc/CHANGELOG.md"
	for page in docs/*.md docs/images/* docs/policy.schema.json experiments/README.md; do
		put 644 "$page" "$doc/$page"
	done
	# Files that the pages link to, and examples.
	# -L: the chart's CRDs are a link to those beside it.
	find -L packaging/kubernetes packaging/libvirt packaging/grafana -type f ! -name 'test*' |
		LC_ALL=C sort | while read -r example; do
		mode=644
		[ ! -x "$example" ] || mode=755
		put "$mode" "$example" "$doc/$example"
	done
	put 644 "$work/policy.toml" "$doc/packaging/policy.toml"
	put 644 "$work/vcc.rules.yml" "$doc/packaging/prometheus/vcc.rules.yml"
	unlink_dead "$doc"
}

# Stops the daemon, and what is registered in a guest. The datapath and driver domains stay.
stop_all() {
	packaged=
	if [ -d /run/systemd/system ]; then
		for unit in vcc.service vcc-guest.service vcc-guest-channel.service; do
			place=$(systemctl show --property FragmentPath --value "$unit")
			if [ "$place" = "$units/$unit" ]; then
				systemctl disable --quiet --now "$unit" || fail "cannot stop $unit (as root?)"
			elif [ "$unit" != vcc.service ] && [ -n "$place" ]; then
				packaged=$place
			fi
		done
		domains=$(systemctl list-units --plain --no-legend 'vcc-domain*@*.service' | cut -d ' ' -f 1)
		[ -z "$domains" ] || echo "uninstall: these keep running, and cannot start again:" "$domains"
	fi
	# Without the command, nothing would make the former default the default again before the next boot.
	if [ -x "$PREFIX/bin/vcc-guest" ] && [ -z "$packaged" ]; then
		"$PREFIX/bin/vcc-guest" remove >/dev/null ||
			echo 'uninstall: the default congestion control may still be flood' >&2
	fi
}

uninstall_all() {
	[ -n "$DESTDIR" ] || stop_all
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	installed_policy >"$work/policy.toml"
	rm -f "$DESTDIR$units/vcc.service" "$DESTDIR$units/vcc-domain@.service" \
		"$DESTDIR$units/vcc-domain-device@.service" "$DESTDIR$units/vcc-guest.service" \
		"$DESTDIR$units/vcc-guest-channel.service" "$DESTDIR$man/vcc.8.gz" "$DESTDIR$man"/vcc-*.8.gz
	for name in vcc vcc-lab vcc-guest; do
		rm -f "$DESTDIR$PREFIX/bin/$name" "$DESTDIR$share/bash-completion/completions/$name" \
			"$DESTDIR$zsh/_$name" "$DESTDIR$share/fish/vendor_completions.d/$name.fish"
	done
	rm -rf "$DESTDIR$share/vcc" "$DESTDIR$doc" "$DESTDIR$doc-guest" \
		"$DESTDIR$PREFIX"/src/vcc-flood-*
	if cmp -s "$work/policy.toml" "$DESTDIR$policy"; then
		rm "$DESTDIR$policy"
		rmdir --ignore-fail-on-non-empty "$DESTDIR$SYSCONFDIR/vcc"
	elif [ -e "$DESTDIR$policy" ]; then
		echo "uninstall: $DESTDIR$policy has been changed and is kept"
	fi
	echo 'uninstall: vcc stays attached to guests until /sys/fs/bpf/vcc is removed'
}

case "${1:-}" in
install) install_all ;;
uninstall) uninstall_all ;;
*) fail "unknown action '${1:-}': usage: install.sh install|uninstall" ;;
esac
