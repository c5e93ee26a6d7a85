#!/usr/bin/env bash
# Tries control groups (cgroup v2), which bound the memory of isolated tasks together with what they start, on a kernel
# of its own: user-mode Linux runs as an ordinary process, so the machine's own groups do not matter. About 20 s.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

if ! command -v linux.uml >/dev/null; then
	as_root=
	[ "$(id -u)" = 0 ] || as_root=sudo
	$as_root apt-get install -y -q user-mode-linux >/dev/null || die "missing: user-mode-linux (Debian's name)"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go test -c -tags cgroups -o "$dir/isolate.test" ./internal/isolate
cat >"$dir/init" <<END
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs tmpfs /run
export PATH="$PATH" TMPDIR=/run
cd /run
"$dir/isolate.test" -test.v -test.run='^TestGroups' && echo every way passes
halt -f -p
END
chmod +x "$dir/init"
HOME=$dir timeout 300 linux.uml mem=768M root=/dev/root rootfstype=hostfs hostfs=/ ro quiet init="$dir/init" \
	con=null con0=null,fd:1 </dev/null | tee "$dir/out"
grep -q '^every way passes' "$dir/out" || die "TestGroups failed; see above"
