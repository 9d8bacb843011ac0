#!/bin/sh
# Installs or removes vcc with its pages, unit and policy: `install.sh install|uninstall`.
# The Debian package consists of the same files.
#
#   VCC      the binary to install
#   VCC_HERE  for a binary of another architecture: one of the same sources that runs here
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

install_all() {
	[ -x "${VCC:-}" ] || fail "VCC='${VCC:-}' is no binary: make build, then set VCC to its path"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT

	put 755 "$VCC" "$PREFIX/bin/vcc"

	here=${VCC_HERE:-$VCC}
	"$here" generate man "$work/man"
	for page in "$work"/man/*.8; do
		# -n: no name and no time, for reproducible files.
		gzip -9n "$page"
		put 644 "$page.gz" "$man/${page##*/}.gz"
	done
	"$here" generate completions "$work/completions"
	put 644 "$work/completions/vcc.bash" "$share/bash-completion/completions/vcc"
	put 644 "$work/completions/_vcc" "$zsh/_vcc"
	put 644 "$work/completions/vcc.fish" "$share/fish/vendor_completions.d/vcc.fish"

	# The units, with the installed paths of binary and documentation.
	for unit in packaging/*.service; do
		[ -e "$unit" ] || continue
		sed -e "s|^ExecStart=[^ ]*/vcc |ExecStart=$PREFIX/bin/vcc |" \
			-e "s|^Documentation=file:.*/|Documentation=file:$doc/docs/|" \
			"$unit" >"$work/unit"
		put 644 "$work/unit" "$units/${unit##*/}"
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

	put 644 README.md "$doc/README.md"
	put 644 CHANGELOG.md "$doc/CHANGELOG.md"
	for page in docs/*.md docs/images/*; do
		put 644 "$page" "$doc/$page"
	done
	# Files that the pages link to, and examples.
	find packaging/kubernetes packaging/libvirt -type f ! -name 'test*' |
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
	rm -f "$DESTDIR$PREFIX/bin/vcc" "$DESTDIR$units/vcc.service" \
		"$DESTDIR$units/vcc-domain@.service" "$DESTDIR$man/vcc.8.gz" "$DESTDIR$man"/vcc-*.8.gz \
		"$DESTDIR$share/bash-completion/completions/vcc" "$DESTDIR$zsh/_vcc" \
		"$DESTDIR$share/fish/vendor_completions.d/vcc.fish"
	rm -rf "$DESTDIR$share/vcc" "$DESTDIR$doc"
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
