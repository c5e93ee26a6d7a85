#!/usr/bin/env bash
# Writes the version of a release into the requirements that the go.mod files have on each other, and into the Python
# package, which must be done before the tags are set. The replace lines stay: go applies them in the main module only.
#
#   scripts/version.sh v0.1.0
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

version=${1-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "expected a version such as v0.1.0, found: ${version:-none}"

path=$(module_path)
list=$(modules)
for dir in $list; do
	siblings=$(sed -nE "s,^(require )?[[:space:]]*($path(/[^ ]+)?) v.*,\2,p" "$dir/go.mod")
	for sibling in $siblings; do
		go mod edit -require="$sibling@$version" "$dir/go.mod"
	done
done

package=python-compat/src/godelayed/__init__.py
sed "s/^__version__ = .*/__version__ = '${version#v}'/" "$package" >"$package.new"
mv "$package.new" "$package"
