#!/usr/bin/env bash
# Checks that a release can be cut from HEAD: sets its tags in a clone and lets go fetch the modules from there as it
# would from GitHub. Each of them must build alone; the examples, as a program of somebody else, must pass their tests
# with all of them, and go install must build the commands. Then it builds the source distribution of the Python
# package, runs the first steps of its README with that, and its tests with each version of Python that it names. It
# publishes nothing and leaves nothing behind.
#
#   scripts/release-check.sh [v0.1.0]    without a version: the one that HEAD has
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

# Modules for the work on this repository. All others of go.work are published.
private='./bench ./examples ./examples/deploy ./itest'

say() { printf 'release-check: %s\n' "$*"; }

python=$root/.venv/bin/python
[ -x "$python" ] || die "no Python environment in .venv: run make setup"
[ -z "$(git status --porcelain)" ] || say "uncommitted changes are not part of the release" >&2

place=$(mktemp -d "${TMPDIR:-/tmp}/delayed-release.XXXXXX")
trap 'rm -rf "$place"' EXIT
tree=$place/delayed
git clone -q --no-tags "$root" "$tree"
root=$tree # where the functions of lib.sh look from here on
cd "$tree"
version=${1:-v$(sed -n "s/^__version__ = '\(.*\)'/\1/p" python-compat/src/godelayed/__init__.py)}
say "$version from $(git log -1 --format='%h %s')"

# The files of HEAD that must have its version.
scripts/version.sh "$version"
git diff --exit-code || die "HEAD is not $version: run make version VERSION=$version and commit what it changes"
grep -qF "## [${version#v}]" CHANGELOG.md || die "CHANGELOG.md has no section ## [${version#v}]"

# The tags. Go finds a module in a folder by a tag that begins with the folder.
path=$(module_path)
list=$(modules)
tags=
gets=
for dir in $list; do
	[[ " $private " != *" $dir "* ]] || continue
	folder=${dir#.}
	folder=${folder#/}
	tags+=" ${folder:+$folder/}$version"
	gets+=" $path${folder:+/$folder}@$version"
done
for tag in $tags; do
	git tag "$tag"
done

# From here on, go works as for a user: an empty module cache, no workspace, and this clone in place of GitHub. Other
# modules come from where they always do.
export GOWORK=off GOMODCACHE=$place/modules TMPDIR=$place/tmp
GONOPROXY="$path,$(go env GONOPROXY)" GONOSUMDB="$path,$(go env GONOSUMDB)" GOFLAGS="$(go env GOFLAGS) -modcacherw"
export GONOPROXY GONOSUMDB GOFLAGS
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$tree.insteadOf" GIT_CONFIG_VALUE_0="https://$path"
mkdir "$TMPDIR"

for get in $gets; do
	say "go get $get, and go build of its packages"
	mkdir "$place/alone"
	cd "$place/alone"
	go mod init example.com/alone
	go get "$get"
	go build -mod=mod "${get%@*}/..."
	cd "$place"
	rm -r "$place/alone"
done

say "go install $path/cmd/delayed@$version"
GOBIN=$place/bin go install "$path/cmd/delayed@$version"
"$place/bin/delayed" version

say "go install $path/delayedvet/cmd/delayedvet@$version, and go vet of the examples with it"
GOBIN=$place/bin go install "$path/delayedvet/cmd/delayedvet@$version"

say "go test of the examples"
cp -R "$tree/examples" "$place/app"
cd "$place/app"
rm go.mod go.sum
find . -name '*.go' -exec sed -i.old "s,$path/examples,example.com/app,g" {} + # the form of -i that macOS knows too
go mod init example.com/app
# shellcheck disable=SC2086 # a list of words
go get $gets
go mod tidy
go list -m all | grep "^$path"
go test -count=1 ./...
go vet -vettool="$place/bin/delayedvet" ./...

cd "$tree"
say "sdist of the Python package"
log=$place/log
"$python" -m build --no-isolation --sdist --outdir "$place/dist" python-compat >"$log" 2>&1 ||
	{
		cat "$log"
		die "the sdist does not build"
	}
scripts/quickstart-python.sh "$place/dist/godelayed-${version#v}.tar.gz"
scripts/pythons.sh "$place/dist/godelayed-${version#v}.tar.gz"

grep -qE "^## \[${version#v}] - [0-9-]+$" CHANGELOG.md || say "CHANGELOG.md: ${version#v} has no date yet"
say "$version can be cut from HEAD, with the tags$tags"
