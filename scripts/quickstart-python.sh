#!/usr/bin/env bash
# Runs the commands of the section "60 seconds" of the Python package's README: in an empty folder, in the virtual
# environment that they make, with a Redis of its own. They install python-compat, or the file that is given.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

folder=$(mktemp -d)
redis=
finish() {
	[ -z "$redis" ] || kill "$redis" 2>/dev/null || true
	rm -rf "$folder"
}
trap finish EXIT

# Writes the files that the section shows, and its commands in their order.
python3 - python-compat/README.md "$folder" <<'PYTHON'
import pathlib, re, sys

readme, folder = pathlib.Path(sys.argv[1]).read_text(encoding='utf-8'), pathlib.Path(sys.argv[2])
section = re.search(r'^## 60 seconds\n(.*?)^## ', readme, re.M | re.S).group(1)
commands, files = [], 0
for before, language, text in re.findall(r'([^\n]*)\n\n```(\w+)\n(.*?)^```$', section, re.M | re.S):
    if language == 'sh':
        commands.append(text)
        continue
    name = re.match(r'`(\w+\.py)`', before)
    (folder / name.group(1)).write_text(text, encoding='utf-8')
    files += 1
if files != 2 or len(commands) != 2:
    sys.exit(f'expected 2 files and 2 lists of commands in the section, found {files} and {len(commands)}')
(folder / 'commands.sh').write_text('set -em\n' + ''.join(commands), encoding='utf-8')
PYTHON

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"${REDIS_SERVER:-redis-server}" --port "$port" --bind 127.0.0.1 --save '' --dir "$folder" >"$folder/redis.log" &
redis=$!

if [ $# = 1 ]; then
	[ -f "$1" ] || die "expected the file of a package, found no $1"
	package=$1
else
	package=./python-compat
	# A copy: building a wheel leaves nothing behind in the tree.
	git ls-files -z --cached --others --exclude-standard python-compat lua | xargs -0 cp --parents -t "$folder"
fi
grep -q '^pip install godelayed ' "$folder/commands.sh" || die "expected a line pip install godelayed in the section"
sed "s,^pip install godelayed .*,pip install $package," "$folder/commands.sh" >"$folder/commands.new"
mv "$folder/commands.new" "$folder/commands.sh"
log=$folder/output
if ! (
	cd "$folder"
	env -u VIRTUAL_ENV REDIS_URL="redis://127.0.0.1:$port/0" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 \
		bash commands.sh
) >"$log" 2>&1; then
	cat "$log"
	die "the quickstart of python-compat/README.md failed"
fi
if ! grep -qx 'welcome, 42, in de' "$log"; then
	cat "$log"
	die "the quickstart of python-compat/README.md did not print what it says"
fi
version=$("$folder/try/bin/python" -c 'import importlib.metadata; print(importlib.metadata.version("godelayed"))')
echo "quickstart: welcome, 42, in de (godelayed $version)"
