package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// limit is how long the tests of a patch may run.
const limit = 3 * time.Minute

// test is one run of tests.
type test struct {
	args   []string
	python bool // arguments of pytest, not of go test
	limit  time.Duration
	all    bool // go on after the first failure
}

func (t test) String() string {
	if t.python {
		return "pytest " + strings.Join(t.args, " ")
	}
	return "go test " + strings.Join(t.args, " ")
}

// where returns the arguments that must be equal for tests to run together.
func (t test) where() string {
	if t.python {
		if slices.Contains(t.args, "-k") {
			return t.String()
		}
		return "pytest"
	}
	before, _, after := t.cutRun()
	return "go test " + strings.Join(append(before, after...), " ")
}

// cutRun splits the arguments of go test at "-run NAMES".
func (t test) cutRun() (before []string, names string, after []string) {
	i := slices.Index(t.args, "-run")
	if i < 0 || i+1 == len(t.args) {
		return t.args, "", nil
	}
	return t.args[:i:i], t.args[i+1], t.args[i+2:]
}

// names reports whether t is or may be a run of the test of that name.
func (t test) names(name string) bool {
	if t.python {
		_, function, _ := strings.Cut(name, "::")
		function, _, _ = strings.Cut(function, "[")
		_, only, some := strings.Cut(t.args[0], "::")
		return !some || only == function
	}
	name, _, _ = strings.Cut(name, "/")
	_, run, _ := t.cutRun()
	pattern, err := topLevel(run)
	return err != nil || pattern.MatchString(name)
}

// together returns one run of all these tests, whose where must be the same.
func together(tests []test) test {
	all := test{python: tests[0].python, limit: 5 * limit, all: true}
	if all.python {
		for _, t := range tests {
			all.args = append(all.args, t.args...)
		}
		return all
	}
	before, _, after := tests[0].cutRun()
	var names []string
	for _, t := range tests {
		if _, name, _ := t.cutRun(); name != "" {
			names = append(names, name)
		}
	}
	all.args = before
	if len(names) == len(tests) { // otherwise one of them is of all tests
		all.args = append(all.args, "-run", strings.Join(names, "|"))
	}
	all.args = append(all.args, after...)
	return all
}

// run runs the tests in the scratch tree. An error means that they could not be run at all.
func (t test) run(ctx context.Context, root, scratch string) (result, error) {
	if t.python {
		return pyTest(ctx, root, scratch, t)
	}
	return goTest(ctx, root, scratch, t)
}

// patch is one way to break the code.
type patch struct {
	name   string // file name without .patch
	file   string
	breaks string   // a sentence
	tests  []test   // one of the runs must fail
	paths  []string // files it changes, relative to the root of the tree
}

// readPatches reads the patches of a directory in the order of their names. If there are words, it reads only the
// patches whose name contains one of them.
func readPatches(dir string, words []string) ([]patch, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var patches []patch
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) }) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := parsePatch(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		p.name, p.file = name, file
		patches = append(patches, p)
	}
	if len(patches) == 0 {
		return nil, fmt.Errorf("no patch in %s has one of %q in its name", dir, words)
	}
	return patches, nil
}

// parsePatch reads the lines before the diff and the paths inside it.
func parsePatch(text string) (patch, error) {
	var p patch
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if v, ok := strings.CutPrefix(line, "# Breaks: "); ok {
			p.breaks = v
		}
		if v, ok := strings.CutPrefix(line, "# Test: "); ok {
			p.tests = append(p.tests, test{args: strings.Fields(v), limit: limit})
		}
		if v, ok := strings.CutPrefix(line, "# Pytest: "); ok {
			p.tests = append(p.tests, test{args: strings.Fields(v), python: true, limit: limit})
		}
		for _, prefix := range []string{"--- a/", "+++ b/"} {
			if v, ok := strings.CutPrefix(line, prefix); ok && !slices.Contains(p.paths, v) {
				p.paths = append(p.paths, v)
			}
		}
	}
	switch {
	case p.breaks == "":
		return p, errors.New(`expected a line "# Breaks: …" that says what the patch breaks`)
	case len(p.tests) == 0:
		return p, errors.New(`expected a line "# Test: …" with the arguments of a go test that must fail, ` +
			`or "# Pytest: …" with those of pytest`)
	case len(p.paths) == 0:
		return p, errors.New(`expected a diff with "--- a/" and "+++ b/" lines`)
	}
	return p, nil
}

// apply changes the scratch tree. The undo it returns is never nil and restores the files of the patch.
func apply(ctx context.Context, scratch string, p patch) (undo func(), err error) {
	before := make(map[string][]byte)
	undo = func() {
		for path, old := range before {
			file := filepath.Join(scratch, path)
			if old == nil {
				os.Remove(file)
			} else if err := os.WriteFile(file, old, 0o644); err != nil {
				panic(fmt.Sprintf("planted: restoring the scratch tree: %v", err))
			}
		}
	}
	for _, path := range p.paths {
		old, err := os.ReadFile(filepath.Join(scratch, path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return undo, err
		}
		before[path] = old
	}
	// One line of context suffices and line numbers do not matter, so that patches outlive changes around them.
	cmd := exec.CommandContext(ctx, "git", "apply", "--recount", "-C1", "--whitespace=nowarn", p.file)
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(scratch))
	if text, err := cmd.CombinedOutput(); err != nil {
		return undo, fmt.Errorf("%w: %s", err, text)
	}
	for path, old := range before {
		now, err := os.ReadFile(filepath.Join(scratch, path))
		if err == nil && old != nil && string(now) == string(old) {
			return undo, fmt.Errorf("git apply left %s as it was", path)
		}
	}
	return undo, nil
}

// copyTree copies the files that git tracks or would track into a new temporary directory.
func copyTree(ctx context.Context, root string) (dir string, err error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("listing the tree: %w", err)
	}
	if dir, err = os.MkdirTemp("", "delayed-planted-"); err != nil {
		return "", err
	}
	// git names a resolved directory; ours must compare equal to it.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	for path := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, path), filepath.Join(dir, path)); err != nil {
			os.RemoveAll(dir)
			return "", fmt.Errorf("copying the tree: %w", err)
		}
	}
	return dir, nil
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted, not yet committed
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}
