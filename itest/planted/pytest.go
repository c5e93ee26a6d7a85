package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	pytestFailed = regexp.MustCompile(`(?m)^FAILED (\S+)`)
	pytestCount  = regexp.MustCompile(`(\d+) (passed|failed)`)
)

// pyTest runs pytest in the Python package of the scratch tree, with the interpreter of the tree itself: the package's
// settings make it import the scratch tree's package. An error means that pytest could not run at all.
func pyTest(ctx context.Context, root, scratch string, t test) (result, error) {
	bounded, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	most := 1
	if t.all {
		most = 1000
	}
	python := filepath.Join(root, ".venv", "bin", "python")
	cmd := exec.CommandContext(bounded, python,
		append([]string{
			"-B", "-m", "pytest", "-p", "no:cacheprovider", "--maxfail=" + strconv.Itoa(most),
			"--tb=short",
		}, t.args...)...)
	cmd.Dir = filepath.Join(scratch, "python-compat")
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	res := readPytest(out.String())
	var exit *exec.ExitError
	switch {
	case bounded.Err() != nil:
		res.failed = []string{fmt.Sprintf("pytest, which did not end within %v", t.limit)}
	case err != nil && !errors.As(err, &exit):
		return result{}, err
	case err != nil && exit.ExitCode() > 1 && exit.ExitCode() != 5: // 1: a test failed, 5: there was none
		return res, fmt.Errorf("%w: %s", err, res.output)
	}
	res.passed = err == nil
	return res, nil
}

// readPytest summarizes what pytest has printed.
func readPytest(text string) (res result) {
	const keep = 20
	for _, m := range pytestFailed.FindAllStringSubmatch(text, -1) {
		res.failed = append(res.failed, strings.TrimPrefix(m[1], "tests/"))
	}
	for _, m := range pytestCount.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		res.ran += n
	}
	lines := strings.SplitAfter(text, "\n")
	res.output = strings.Join(lines[max(0, len(lines)-keep):], "")
	return res
}
