# Sourced by the other scripts: where things are, which versions, and the list of modules.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Exact versions. Raise them by hand, in a commit of its own.
golangci_lint_version=v2.12.2
govulncheck_version=v1.7.0

# Oldest toolchain that builds the modules and runs the tests (testing/synctest).
go_minimum=1.25

# Tools are in a directory named after their version and the toolchain that built them, because a linter built by an
# older toolchain refuses newer code. GOVERSION is read in the root module, whose go.mod may ask for a newer one.
tools_dir() {
	printf '%s/.cache/bin/%s\n' "$root" "$(cd "$root" && go env GOVERSION)"
}

golangci_lint() { printf '%s/golangci-lint-%s\n' "$(tools_dir)" "$golangci_lint_version"; }
govulncheck() { printf '%s/govulncheck-%s\n' "$(tools_dir)" "$govulncheck_version"; }

# modules prints the directory of every module, relative to the root, one per line: those of go.work.
modules() {
	(cd "$root" && go work edit -json) | sed -n 's/.*"DiskPath": *"\([^"]*\)".*/\1/p'
}

# module_path prints the path of the root module. The paths of all others begin with it.
module_path() { sed -n 's/^module //p' "$root/go.mod"; }

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# install_tool builds a Go program at an exact version, outside of any module of this tree.
install_tool() { # file, package@version
	local file=$1 package=$2 tmp
	if [ -x "$file" ]; then
		return
	fi
	printf 'building %s (once; the linter takes up to two minutes)\n' "$package" >&2
	mkdir -p "$(dirname "$file")"
	tmp=$(mktemp -d "$(dirname "$file")/build.XXXXXX")
	# The compiler collects its garbage rarely and writes nothing for debuggers, which takes a quarter less time.
	if ! (cd "$tmp" && GOGC=1000 GOWORK=off GOBIN=$tmp \
		go install -race=false -gcflags=all=-dwarf=false -ldflags=-w "$package"); then
		rm -rf "$tmp"
		die "could not build $package: see go's message above"
	fi
	# The rename comes last: an interrupted build leaves nothing that looks finished.
	mv "$tmp"/* "$file" # there is nothing else
	rm -rf "$tmp"
}
