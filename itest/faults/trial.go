package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tests are the tests of one package, or some of them.
type tests struct {
	pkg string // as an argument of go test in the root of the repository
	run string // names of a test and its subtests, with slashes; empty: all
}

func (t tests) String() string { return strings.TrimSpace(t.pkg + " " + t.run) }

// pattern returns the argument of -run.
func (t tests) pattern() string {
	if t.run == "" {
		return "."
	}
	return "^" + strings.ReplaceAll(t.run, "/", "$/^") + "$"
}

// trial is a changed file and the tests that should notice.
type trial struct {
	name  string
	path  string // of the file, relative to the root of the repository
	text  string // of the file with its change
	tests []tests
	limit time.Duration // for the tests of one package
}

type outcome string

const (
	caught   outcome = "caught"
	survived outcome = "SURVIVED"
	invalid  outcome = "INVALID" // it does not compile, or there is no test
)

type result struct {
	outcome outcome
	output  string // of go test, if the outcome is survived or invalid
}

// try runs the tests with the changed file, one package after the other, until one fails.
func (t trial) try(ctx context.Context, root string) result {
	dir, err := os.MkdirTemp("", "delayed-faults-")
	if err != nil {
		return result{invalid, err.Error() + "\n"}
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "changed"+filepath.Ext(t.path)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, t.path): changed}})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err == nil {
		err = os.WriteFile(changed, []byte(t.text), 0o600)
	}
	if err != nil {
		return result{invalid, err.Error() + "\n"}
	}
	r := result{invalid, "expected a package with tests, found none\n"}
	for _, tests := range t.tests {
		out, passed := goTest(ctx, root, t.limit, "-overlay="+overlay, "-failfast", "-run="+tests.pattern(), tests.pkg)
		switch {
		case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
			return result{invalid, out}
		case !passed:
			return result{outcome: caught}
		case strings.Contains(out, "[no test"): // [no test files] or [no tests to run]
			r.output = out
		default:
			r = result{survived, out}
		}
	}
	return r
}

// unbroken runs all tests of the trials without any change: they must pass, or their failure means nothing.
func unbroken(ctx context.Context, root string, trials []trial) error {
	pkgs, names := map[string]bool{}, map[string]bool{}
	for _, t := range trials {
		for _, tests := range t.tests {
			name, _, _ := strings.Cut(tests.run, "/")
			pkgs[tests.pkg], names[name] = true, true
		}
	}
	run := "-run=^(" + strings.Join(slices.Sorted(maps.Keys(names)), "|") + ")$"
	out, passed := goTest(ctx, root, 10*time.Minute, append([]string{run}, slices.Sorted(maps.Keys(pkgs))...)...)
	if !passed {
		return fmt.Errorf("expected the tests to pass without a fault, found a failure: mend it first\n%s", out)
	}
	return nil
}

// goTest runs go test. Compiling and linking take most of the time of a trial: half as much if the package that is
// tested is not inlined, the compiler collects little garbage and the linker writes no tables for debuggers.
func goTest(ctx context.Context, root string, limit time.Duration, args ...string) (out string, passed bool) {
	cmd := exec.CommandContext(ctx, "go", append([]string{
		"test", "-vet=off", "-gcflags=-l", "-ldflags=-s -w", "-toolexec=env GOGC=800", "-timeout=" + limit.String(),
	}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "DELAYED_TEST_PATIENCE=10s") // many tests notice a fault by waiting in vain
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}
