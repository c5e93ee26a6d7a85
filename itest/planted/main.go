// Command planted checks the tests: it breaks the code on purpose, in one small way at a time, and expects a test to
// fail.
//
// Each way is a patch in this directory, made with git diff. Its first lines say what is broken and which tests must
// notice, as arguments of go test in the root of the tree:
//
//	# Breaks: an ack answers 1 although the claim is gone.
//	# Test: . -run TestAck
//	# Test: -C itest ./pause -run TestPause
//	# Pytest: tests/test_worker.py -k retries
//
// Those of a line "# Pytest:" are arguments of pytest in python-compat, which runs with the interpreter of .venv.
//
// The patches are applied to scratch copies of the tree, uncommitted changes included. A patch after which all its
// tests still pass has survived and fails the command, and so does one that no longer applies or does not compile: then
// the patch must be mended. Before the patches, every test they name has to pass on the unbroken copy.
//
//	go run ./planted            # all patches
//	go run ./planted ack claim  # those whose name contains one of the words
//	go run ./planted -j 1       # one at a time: by default as many as there are processors, at most four
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var errInterrupted = errors.New("interrupted")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// run reads the arguments and tries the patches, some at a time: each in a scratch copy that no other one uses
// meanwhile.
func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("planted", flag.ContinueOnError)
	atATime := flags.Int("j", min(runtime.NumCPU(), 4), "patches tried at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	start := time.Now()
	root, err := treeRoot(ctx)
	if err != nil {
		return err
	}
	patches, err := readPatches(filepath.Join(root, "itest", "planted"), flags.Args())
	if err != nil {
		return err
	}
	scratches := make([]string, max(1, min(*atATime, len(patches))))
	for i := range scratches {
		if scratches[i], err = copyTree(ctx, root); err != nil {
			return err
		}
		defer os.RemoveAll(scratches[i])
	}

	broken, err := baseline(ctx, out, root, scratches[0], patches)
	if err != nil {
		return err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // for out and bad
		bad  int
		todo = make(chan patch, len(patches))
	)
	for _, p := range patches {
		todo <- p
	}
	close(todo)
	for _, scratch := range scratches {
		wg.Go(func() {
			for p := range todo {
				began := time.Now()
				verdict, ok := try(ctx, root, scratch, p, broken)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				fmt.Fprintf(out, "%-32s %s (%.1f s)\n", p.name, verdict, time.Since(began).Seconds())
				if !ok {
					bad++
					fmt.Fprintf(out, "%-32s   it breaks: %s\n", "", p.breaks)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return errInterrupted
	}
	took := time.Since(start).Seconds()
	if bad > 0 {
		return fmt.Errorf("%d of %d patches were not caught by a test (%.1f s)", bad, len(patches), took)
	}
	fmt.Fprintf(out, "planted: %d patches, each caught by a test (%.1f s)\n", len(patches), took)
	return nil
}

// try applies one patch, runs its tests and takes the patch out again. ok says whether a test failed.
func try(ctx context.Context, root, scratch string, p patch, broken map[string]string) (verdict string, ok bool) {
	for _, t := range p.tests {
		if line := t.String(); broken[line] != "" {
			return "TEST USELESS: " + line + " " + broken[line], false
		}
	}
	undo, err := apply(ctx, scratch, p)
	defer undo()
	if err != nil {
		return "DOES NOT APPLY: " + err.Error(), false
	}
	for _, t := range p.tests {
		res, err := t.run(ctx, root, scratch)
		switch {
		case err != nil:
			return "CANNOT RUN: " + err.Error(), false
		case res.buildFailed:
			return "DOES NOT COMPILE:\n" + res.output, false
		case len(res.failed) > 0:
			return "caught by " + strings.Join(res.failed, ", "), true
		case !res.passed:
			return "NO TEST NAMED: it failed outside of a test\n" + res.output, false
		case res.ran == 0:
			return "TEST USELESS: " + t.String() + " runs no test: expected the name of one", false
		}
	}
	return "SURVIVED", false
}

// baseline runs every test that the patches name on the unbroken tree, where it has to pass: its failure means nothing
// otherwise. Tests of one package run together. It returns what is wrong, by the names of the runs.
func baseline(
	ctx context.Context, out io.Writer, root, scratch string, patches []patch,
) (broken map[string]string, err error) {
	start := time.Now()
	broken = map[string]string{}
	seen := map[string]bool{}
	groups := map[string][]test{}
	for _, p := range patches {
		for _, t := range p.tests {
			if line := t.String(); !seen[line] {
				seen[line] = true
				groups[t.where()] = append(groups[t.where()], t)
			}
		}
	}
	for _, where := range slices.Sorted(maps.Keys(groups)) {
		res, err := together(groups[where]).run(ctx, root, scratch)
		switch {
		case ctx.Err() != nil:
			return nil, errInterrupted
		case err != nil:
			return nil, fmt.Errorf("%s: %w", where, err)
		case res.passed:
			continue
		}
		fmt.Fprintf(out, "%s: %s fails without any patch:\n%s\n", where, strings.Join(res.failed, ", "), res.output)
		for _, t := range groups[where] {
			if len(res.failed) == 0 || slices.ContainsFunc(res.failed, t.names) {
				broken[t.String()] = "fails without any patch"
			}
		}
	}
	passed, took := len(seen)-len(broken), time.Since(start).Seconds()
	fmt.Fprintf(out, "unbroken: %d of %d runs of tests pass (%.1f s)\n", passed, len(seen), took)
	return broken, nil
}

// treeRoot returns the top directory of the working tree.
func treeRoot(ctx context.Context) (string, error) {
	top, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("finding the top of the tree: expected to run inside a git clone: %w", err)
	}
	return strings.TrimSpace(string(top)), nil
}
