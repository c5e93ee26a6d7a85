package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// module writes the module of testdata into a directory.
func module(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/module.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, err := txtar.FS(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestFigures(t *testing.T) {
	const want = `imports that point up              1  at most 0: BROKEN
    under/under.go:3: under (floor 0) imports over (floor 1)
largest knot of files              3  at most 2: BROKEN
    over: first.go second.go third.go
fields that hold functions         1  at most 0: BROKEN
    over/first.go:5: call
files with too many lines          2  at most 0: BROKEN
    nested/long.py: 17 lines, at most 16
    root_test.go: 6 lines, at most 5
lines with too many columns        4  at most 0: BROKEN
    Makefile:1
    wide.md:1
    wide.md:2
    wide.sh:2
names exported by the root         4  at most 3: BROKEN
    Five
    Four
    One
    Three
entries of the root folder         9  at most 7: BROKEN
    Makefile
    go.mod
    nested
    over
    root.go
    root_test.go
    under
    wide.md
    wide.sh
stray files                        3  at most 0: BROKEN
    .tools/tool.sh
    over/over.test
    under/.awaitDrained(time.Minute)p
`
	var out strings.Builder
	floors := [][]string{{"under", "under/same"}, {"over"}, {"."}}
	r := rules{
		floors: floors, lines: 16, testLines: 5, columns: 60, knot: 2, exported: 3, entries: 7,
		hidden: []string{".gitignore"},
	}
	dir := module(t)
	for _, name := range []string{"over/over.test", "under/.awaitDrained(time.Minute)p"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := run(&out, dir, r, true)
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if err == nil || !strings.Contains(err.Error(), "limits broken: 8 ") {
		t.Errorf("error is %v, want 8 broken limits", err)
	}
}

func TestLimitsKept(t *testing.T) {
	var out strings.Builder
	floors := [][]string{{"over"}, {"under", "under/same"}, {"."}}
	r := rules{
		floors: floors, lines: 17, testLines: 6, columns: 72, knot: 3, exported: 4, fields: 1, entries: 9,
		hidden: []string{".tools", ".gitignore"},
	}
	if err := run(&out, module(t), r, false); err != nil {
		t.Errorf("%v:\n%s", err, out.String())
	}
	if strings.Contains(out.String(), "third.go") {
		t.Errorf("what was counted is listed without -v:\n%s", out.String())
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, dir string
		floors    [][]string
		want      string
	}{
		{
			"no floor", module(t),
			[][]string{{"under", "over"}, {"."}},
			"package under/same stands on no floor: add it to floors in itest/house/rules.go",
		},
		{"no module", t.TempDir(), nil, "does not contain main module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := run(&out, c.dir, rules{floors: c.floors}, false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}
