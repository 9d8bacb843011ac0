#!/bin/sh
# Puts vcc and all that goes with it into place, or takes it away: `install.sh install|uninstall`.
# The Debian package is made of the same files.
#
#   VCC      the binary to install
#   PREFIX   /usr/local
#   SYSCONFDIR  /etc
#   DESTDIR  a root to install below, for packages
#   ZSH_COMPLETIONS  PREFIX/share/zsh/site-functions
set -eu
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local}
SYSCONFDIR=${SYSCONFDIR:-/etc}
DESTDIR=${DESTDIR:-}
share=$PREFIX/share
zsh=${ZSH_COMPLETIONS:-$share/zsh/site-functions}
man=$share/man/man8
doc=$share/doc/vcc
unit=$PREFIX/lib/systemd/system/vcc.service
policy=$SYSCONFDIR/vcc/policy.toml

fail() {
	echo "install: $*" >&2
	exit 1
}

# put MODE SOURCE TARGET
put() {
	install -D -m "$1" "$2" "$DESTDIR$3" || fail "cannot write $DESTDIR$3 (as root?)"
}

# The default policy, which speaks of its schema and its reference where they are installed.
installed_policy() {
	sed -e "1s|^#:schema .*|#:schema $share/vcc/policy.schema.json|" \
		-e "s|docs/policy\.md|$doc/docs/policy.md|" packaging/policy.toml
}

install_all() {
	[ -x "${VCC:-}" ] || fail "there is no binary '${VCC:-}': make build, then give it as VCC"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT

	put 755 "$VCC" "$PREFIX/bin/vcc"

	"$VCC" generate man "$work/man"
	for page in "$work"/man/*.8; do
		# -n: neither name nor time, so that the same page is the same file.
		gzip -9n "$page"
		put 644 "$page.gz" "$man/${page##*/}.gz"
	done
	"$VCC" generate completions "$work/completions"
	put 644 "$work/completions/vcc.bash" "$share/bash-completion/completions/vcc"
	put 644 "$work/completions/_vcc" "$zsh/_vcc"
	put 644 "$work/completions/vcc.fish" "$share/fish/vendor_completions.d/vcc.fish"

	# The unit, with the binary and the page that are installed here.
	if [ -e packaging/vcc.service ]; then
		sed -e "s|^ExecStart=[^ ]*/vcc |ExecStart=$PREFIX/bin/vcc |" \
			-e "s|^Documentation=file:.*/|Documentation=file:$doc/docs/|" \
			packaging/vcc.service >"$work/unit"
		put 644 "$work/unit" "$unit"
	fi

	installed_policy >"$work/policy.toml"
	if [ -e "$DESTDIR$policy" ]; then
		echo "install: $DESTDIR$policy is there and stays as it is"
	else
		put 644 "$work/policy.toml" "$policy"
	fi

	put 644 docs/policy.schema.json "$share/vcc/policy.schema.json"
	for dashboard in packaging/grafana/*.json; do
		[ ! -e "$dashboard" ] || put 644 "$dashboard" "$share/vcc/grafana/${dashboard##*/}"
	done

	put 644 README.md "$doc/README.md"
	put 644 CHANGELOG.md "$doc/CHANGELOG.md"
	for page in docs/*.md; do
		put 644 "$page" "$doc/$page"
	done
	# Where the pages' links lead, and what else there is to copy from.
	find packaging/container packaging/kubernetes packaging/libvirt -type f ! -name 'test*' |
		LC_ALL=C sort | while read -r example; do
		mode=644
		[ ! -x "$example" ] || mode=755
		put "$mode" "$example" "$doc/$example"
	done
	put 644 "$work/policy.toml" "$doc/packaging/policy.toml"
}

uninstall_all() {
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	installed_policy >"$work/policy.toml"
	rm -f "$DESTDIR$PREFIX/bin/vcc" "$DESTDIR$unit" "$DESTDIR$man/vcc.8.gz" "$DESTDIR$man"/vcc-*.8.gz \
		"$DESTDIR$share/bash-completion/completions/vcc" "$DESTDIR$zsh/_vcc" \
		"$DESTDIR$share/fish/vendor_completions.d/vcc.fish"
	rm -rf "$DESTDIR$share/vcc" "$DESTDIR$doc"
	if cmp -s "$work/policy.toml" "$DESTDIR$policy"; then
		rm "$DESTDIR$policy"
		rmdir --ignore-fail-on-non-empty "$DESTDIR$SYSCONFDIR/vcc"
	elif [ -e "$DESTDIR$policy" ]; then
		echo "uninstall: $DESTDIR$policy has been changed and stays"
	fi
	echo 'uninstall: guests that vcc is attached to stay so until /sys/fs/bpf/vcc is removed'
}

case "${1:-}" in
install) install_all ;;
uninstall) uninstall_all ;;
*) fail 'install or uninstall?' ;;
esac
