package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Under go vet, each package is a process of its own, and what other packages have declared comes from files.
func TestVettool(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "delayedvet")
	build := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-o", tool, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := vet(t.Context(), tool, "./arguments")
	for _, want := range []string{
		"delayed: example.com/app/mail.Welcome: expected 2 arguments (int64, string), found 1",
		"delayed: sum.int: expected 2 arguments (int, int), found 1", // a variable of another package
	} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("go vet: %v, expected %q, found\n%s", err, want, out)
		}
	}
	if out, err := vet(t.Context(), tool, "./correct/..."); err != nil {
		t.Errorf("go vet of correct calls: %v\n%s", err, out)
	}
}

// TestSkip leaves out what cannot use package delayed, and nothing else.
func TestSkip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none, some := file("none", ""), file("some", "facts")
	for name, test := range map[string]struct {
		unit unit
		want bool
	}{
		"imports nothing":       {unit{ImportPath: "errors", VetxOnly: true}, true},
		"imports without facts": {unit{ImportMap: map[string]string{"fmt": "fmt"}, VetxOnly: true}, true},
		"unsafe":                {unit{ImportMap: map[string]string{"unsafe": "unsafe"}, VetxOnly: true}, true},
		"imports facts":         {unit{ImportMap: map[string]string{"mail": "mail"}, VetxOnly: true}, false},
		"imports what failed":   {unit{ImportMap: map[string]string{"lost": "lost"}, VetxOnly: true}, false},
		"package delayed":       {unit{ImportPath: root, VetxOnly: true}, false},
		"to be checked":         {unit{ImportPath: "errors"}, false},
	} {
		test.unit.PackageVetx = map[string]string{"fmt": none, "mail": some}
		test.unit.VetxOutput = filepath.Join(t.TempDir(), "vet.out")
		data, err := json.Marshal(test.unit)
		if err != nil {
			t.Fatal(err)
		}
		got := skip([]string{"-x", file("vet.cfg", string(data))})
		if facts, err := os.Stat(test.unit.VetxOutput); got != test.want || (err == nil) != got ||
			got && facts.Size() > 0 {
			t.Errorf("%s: found %t, expected %t; facts: %v", name, got, test.want, err)
		}
	}
	lost, broken := filepath.Join(dir, "lost.cfg"), file("broken.cfg", "{")
	for _, args := range [][]string{nil, {"./..."}, {"-V=full"}, {lost}, {broken}} {
		if skip(args) {
			t.Errorf("%q: expected the analyzer to run", args)
		}
	}
}

func vet(ctx context.Context, tool string, packages ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"vet", "-vettool=" + tool}, packages...)...)
	cmd.Dir = filepath.Join("..", "..", "testdata", "app")
	cmd.Env = append(os.Environ(), "GOWORK=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
