package main

import (
	"os"
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
	return dir
}

func TestFigures(t *testing.T) {
	const want = `imports that point up              1  at most 0: BROKEN
    under/under.go:3: under (floor 0) imports over (floor 1)
largest knot of files              3  at most 2: BROKEN
    over: 3 files
      first.go uses second.go (second)
      second.go uses first.go (thing), third.go (third)
      third.go uses first.go (thing)
methods away from their type       1
    over/third.go: thing.third, of first.go
files past 16 lines                1  at most 0: BROKEN
    nested/long.py: 17 lines
lines past 60 columns              4  at most 0: BROKEN
    Makefile:1
    wide.md:1
    wide.md:2
    wide.sh:2
names exported by the root         4  at most 3: BROKEN
    Five
    Four
    One
    Three

| package                        | files |  lines | largest knot | methods away |
|--------------------------------|------:|-------:|-------------:|-------------:|
| .                              |     1 |     16 |            0 |            0 |
| over                           |     5 |     20 |            3 |            1 |
| under                          |     1 |      3 |            0 |            0 |
| under/same                     |     1 |      4 |            0 |            0 |
| 4 packages                     |     8 |     43 |            3 |            1 |
`
	var out strings.Builder
	floors := [][]string{{"under", "under/same"}, {"over"}, {"."}}
	r := rules{floors: floors, lines: 16, columns: 60, knot: 2, exported: 3}
	err := run(&out, module(t), r, true)
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if err == nil || !strings.Contains(err.Error(), "limits broken: 5 ") {
		t.Errorf("error is %v, want 5 broken limits", err)
	}
}

func TestLimitsKept(t *testing.T) {
	var out strings.Builder
	floors := [][]string{{"over"}, {"under", "under/same"}, {"."}}
	r := rules{floors: floors, lines: 17, columns: 72, knot: 3, exported: 4}
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
