#!/usr/bin/env bash
# Does what a newcomer does: clones HEAD into an empty folder, with an empty HOME, empty Go caches and no virtual
# environment, and runs the README's two commands unchanged: the code blocks after the comments "first command" and
# "second command".
#
# It keeps only PATH and the variables that tell package clients how to reach their sources (proxies, certificates,
# mirrors).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

# command_of prints the code block of README.md after the comment "<name> command".
command_of() {
	awk -v mark="<!-- $1 command -->" '
		$0 == mark { marked = 1; next }
		marked && /^```/ { if (inside) exit; inside = 1; next }
		inside
	' README.md
}

[ -z "$(git status --porcelain)" ] || printf 'fresh: uncommitted changes are not part of the clone\n' >&2

place=$(mktemp -d "${TMPDIR:-/tmp}/delayed-fresh.XXXXXX")
cleanup() {
	chmod -R u+w "$place" # Go's module cache is read-only
	rm -rf "$place"
}
trap cleanup EXIT
mkdir "$place/home" "$place/tmp"
git clone -q "$root" "$place/delayed"
cd "$place/delayed"
printf 'fresh: cloned %s\n' "$(git log -1 --format='%h %s')"

list=
for name in first second; do
	line=$(command_of "$name")
	[ "$(printf '%s\n' "$line" | grep -c .)" = 1 ] ||
		die "README.md: expected a code block of one command after <!-- $name command -->, found: ${line:-none}"
	list+="$line"$'\n'
done

environment=(
	"PATH=$PATH" "HOME=$place/home" "TMPDIR=$place/tmp" "LANG=${LANG:-C.UTF-8}"
	"GOPATH=$place/home/go" "GOCACHE=$place/home/go-cache" "GOMODCACHE=$place/home/go/pkg/mod"
)
# go env also shows what was set with go env -w, which an empty HOME would hide.
for name in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE GOVCS GOFLAGS GOTOOLCHAIN; do
	environment+=("$name=$(cd / && go env "$name")")
done
for name in $(compgen -e); do
	case $name in
	PIP_CACHE_DIR | [Nn][Pp][Mm]_[Cc][Oo][Nn][Ff][Ii][Gg]_[Cc][Aa][Cc][Hh][Ee]) ;; # must be empty
	PIP_* | [Nn][Pp][Mm]_[Cc][Oo][Nn][Ff][Ii][Gg]_* | \
		[Hh][Tt][Tt][Pp]_[Pp][Rr][Oo][Xx][Yy] | [Hh][Tt][Tt][Pp][Ss]_[Pp][Rr][Oo][Xx][Yy] | \
		[Nn][Oo]_[Pp][Rr][Oo][Xx][Yy] | [Aa][Ll][Ll]_[Pp][Rr][Oo][Xx][Yy] | \
		SSL_CERT_FILE | SSL_CERT_DIR | CURL_CA_BUNDLE | REQUESTS_CA_BUNDLE | GIT_SSL_CAINFO | NODE_EXTRA_CA_CERTS | \
		REDIS_SERVER)
		environment+=("$name=${!name}")
		;;
	esac
done
if [ -z "${PIP_CONFIG_FILE-}" ]; then
	for file in "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
		if [ -f "$file" ]; then environment+=("PIP_CONFIG_FILE=$file") && break; fi
	done
fi
if [ -z "${NPM_CONFIG_USERCONFIG-}${npm_config_userconfig-}" ] && [ -f "$HOME/.npmrc" ]; then
	environment+=("NPM_CONFIG_USERCONFIG=$HOME/.npmrc")
fi

times=
while read -r command; do
	printf '\nfresh: $ %s\n' "$command"
	start=$SECONDS
	env -i "${environment[@]}" bash -c "$command" </dev/null || die "README's command failed: $command"
	times+=$(printf 'fresh: %4d s  %s' $((SECONDS - start)) "$command")$'\n'
done <<<"${list%$'\n'}"
printf '\n%s' "$times"
