package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// fault is an entry of a file in this directory.
type fault struct {
	file   string // the file of the entry
	Breaks string // a sentence without a full stop
	In     string // a file or folder; empty: everywhere
	Old    string
	New    string
	Test   string // the package, and the names of a test and its subtests
}

func (f fault) String() string { return f.file + ": " + f.Breaks }

func (f fault) matches(words []string) bool {
	return len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.String(), w) })
}

// readFaults reads all files in dir.
func readFaults(dir string) ([]fault, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return nil, err
	}
	var faults []fault
	for _, path := range paths {
		var list struct{ Fault []fault }
		meta, err := toml.DecodeFile(path, &list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if unknown := meta.Undecoded(); len(unknown) > 0 {
			return nil, fmt.Errorf("%s: expected breaks, in, old, new and test, found %s: correct or remove it",
				path, unknown[0])
		}
		for _, f := range list.Fault {
			f.file = filepath.Base(path)
			faults = append(faults, f)
		}
	}
	return faults, nil
}

// trial returns the fault applied to the file that holds its old text. An error says what is wrong with the entry.
func (f fault) trial(files map[string]string) (trial, error) {
	pkg, run, _ := strings.Cut(f.Test, " ")
	switch {
	case f.Breaks == "":
		return trial{}, fmt.Errorf("%s: expected a sentence in breaks, found an entry without: add it", f.file)
	case f.Old == "" || f.Old == f.New:
		return trial{}, fmt.Errorf("%s: expected old and new to differ, found %q twice: change one", f, f.New)
	case !strings.HasPrefix(pkg, ".") || run == "":
		return trial{}, fmt.Errorf(`%s: expected a test such as "./internal/sweep TestX", found %q: name one`,
			f, f.Test)
	}
	var found []string
	times := 0
	for path, text := range files {
		if n := strings.Count(text, f.Old); n > 0 && below(path, f.In) {
			times += n
			found = append(found, path)
		}
	}
	if times != 1 {
		slices.Sort(found)
		where, advice := "here", "the code has changed: look for its new form, or remove the entry"
		if f.In != "" {
			where = "below " + f.In
		}
		if times > 1 {
			advice = "lengthen old, or name a smaller part of the tree as in"
		}
		return trial{}, fmt.Errorf("%s: expected the old text exactly once %s, found it %d times in %q: %s\n\t%s",
			f, where, times, found, advice, f.Old)
	}
	text := strings.Replace(files[found[0]], f.Old, f.New, 1)
	return trial{f.String(), found[0], text, []tests{{pkg, run}}, 30 * time.Second}, nil
}

// testExists reports whether the package has a test function of that name.
func testExists(root string, t tests) (bool, error) {
	name, _, _ := strings.Cut(t.run, "/")
	paths, err := filepath.Glob(filepath.Join(root, t.pkg, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true, nil
		}
	}
	return false, nil
}

// below reports whether path is the file or folder in, or below it.
func below(path, in string) bool { return in == "" || path == in || strings.HasPrefix(path, in+"/") }

// elsewhere are folders without code that a fault may break: Python's, and programs that only test or measure.
var elsewhere = []string{"bench", "itest", "python-compat"}

// readTree returns the Go files of the repository, without tests, and its Lua scripts. Keys are paths with slashes.
func readTree(root string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name[0] == '.' || name == "testdata") || slices.Contains(elsewhere, rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, "_test.go") || filepath.Ext(name) != ".go" && filepath.Ext(name) != ".lua" {
			return nil
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("expected Go files below " + root + ", found none: name the root of the repository")
	}
	return files, err
}
