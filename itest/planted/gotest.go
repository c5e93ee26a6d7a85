package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// result is the result of one run of go test.
type result struct {
	passed      bool
	buildFailed bool
	ran         int      // top-level tests and subtests that passed or failed
	failed      []string // failed tests, innermost first named; at most three
	output      string   // the last lines, for messages
}

// event is a line of go test -json.
type event struct {
	Action      string
	Test        string
	Output      string
	FailedBuild string
}

// goTest runs go test in the scratch tree, with the Python interpreter of the tree itself. An error means that go test
// could not run at all.
//
// Compiling takes nearly all of the time, so goTest compiles little: without paths, so that the scratch copies share
// packages that are not broken, without inlining, without the other tests of the package and with fewer garbage
// collections in the compiler.
func goTest(ctx context.Context, root, scratch string, t test) (result, error) {
	full, args := []string{"test"}, t.args
	dir := scratch
	if len(args) >= 2 && args[0] == "-C" { // go wants it first
		full, args = append(full, args[:2]...), args[2:]
		dir = filepath.Join(scratch, full[2])
	}
	full = append(full, "-json", "-count=1", fmt.Sprintf("-failfast=%t", !t.all), "-vet=off",
		"-timeout="+t.limit.String(),
		"-trimpath", "-gcflags=-l", "-ldflags=-s -w", "-toolexec=env GOGC=400")
	if _, names, _ := t.cutRun(); names != "" && !strings.Contains(args[0], "...") {
		overlays, err := os.MkdirTemp("", "delayed-overlay-")
		if err != nil {
			return result{}, err
		}
		defer os.RemoveAll(overlays)
		overlay, err := prune(filepath.Join(dir, args[0]), names, overlays)
		if err == nil {
			full = append(full, "-overlay="+overlay)
		} // otherwise a patch broke the syntax: the compiler says it better
	}
	cmd := exec.CommandContext(ctx, "go", append(full, args...)...)
	cmd.Dir = scratch
	// Many tests notice a fault by waiting in vain.
	cmd.Env = append(os.Environ(), "DELAYED_TEST_PATIENCE=20s")
	for name, path := range map[string]string{ // what make setup has installed, which no scratch copy has
		"DELAYED_PYTHON": ".venv/bin/python", "DELAYED_AXE": ".cache/npm/node_modules/axe-core/axe.min.js",
	} {
		path = filepath.Join(root, path)
		if _, err := os.Stat(path); err == nil && os.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+path)
		}
	}
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	res := readEvents(bytes.NewReader(stdout), t.all)
	res.passed = err == nil
	if res.output == "" {
		res.output = stderr.String()
	}
	if err != nil && res.ran == 0 && !res.buildFailed && len(stdout) == 0 {
		return res, fmt.Errorf("%w: %s", err, stderr.String())
	}
	return res, nil
}

// readEvents summarizes the lines of go test -json; it skips lines that are not JSON. It names three failed tests, or
// all.
func readEvents(r io.Reader, all bool) result {
	keep := 20
	if all {
		keep = 200
	}
	var res result
	var failed, lines []string
	dec := json.NewDecoder(r)
	for {
		var e event
		if err := dec.Decode(&e); err != nil {
			break
		}
		switch e.Action {
		case "build-fail":
			res.buildFailed = true
		case "build-output", "output":
			lines = append(lines, e.Output)
			if len(lines) > keep {
				lines = lines[1:]
			}
		case "pass", "fail":
			if e.FailedBuild != "" {
				res.buildFailed = true
			}
			if e.Test == "" {
				continue
			}
			res.ran++
			if e.Action == "fail" {
				failed = append(failed, e.Test)
			}
		}
	}
	for _, name := range failed {
		// Leave out a test whose subtest failed, because the subtest says more.
		if !slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, name+"/") }) &&
			(all || len(res.failed) < 3) {
			res.failed = append(res.failed, name)
		}
	}
	res.output = strings.Join(lines, "")
	return res
}
