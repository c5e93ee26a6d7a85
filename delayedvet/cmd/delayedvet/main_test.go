package main

import (
	"context"
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
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
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

func vet(ctx context.Context, tool string, packages ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"vet", "-vettool=" + tool}, packages...)...)
	cmd.Dir = filepath.Join("..", "..", "testdata", "app")
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
