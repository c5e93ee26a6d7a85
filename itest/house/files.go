package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// measured lists the files to read: Makefiles and files with these extensions.
var measured = []string{".go", ".py", ".lua", ".sh", ".md", ".yml", ".toml", ".mjs"}

// file is a text file of the tree, with its path relative to the root of the tree.
type file struct {
	path  string
	lines int
	wide  []int // numbers of the lines that have too many columns
}

// listFiles returns the paths of all files below dir, nested modules included: those that Git knows, and those that it
// would add.
func listFiles(dir string) ([]string, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", dir, err)
	}
	paths := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name)) // Git lists what was removed and is not committed
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}

// readFiles reads the measured ones of the files below dir.
func readFiles(dir string, paths []string, columns int) (files []file, err error) {
	for _, name := range paths {
		if path.Base(name) != "Makefile" && !slices.Contains(measured, path.Ext(name)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		f := file{path: name}
		for line := range strings.Lines(string(text)) {
			f.lines++
			if width(line) > columns {
				f.wide = append(f.wide, f.lines)
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// width counts a tab as four columns, wherever it is. It leaves out what tests of analyzers expect of a line, which has
// to stand in it.
func width(line string) int {
	line, _, _ = strings.Cut(line, "// want `")
	line = strings.TrimRight(line, " \r\n")
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// tooLarge lists files of code with too many lines, and lines with too many columns.
func tooLarge(files []file, r rules) (long, wide []string) {
	for _, f := range files {
		most := r.lines
		if strings.HasSuffix(f.path, "_test.go") {
			most = r.testLines
		}
		if f.lines > most && path.Ext(f.path) != ".md" {
			long = append(long, fmt.Sprintf("%s: %d lines, at most %d", f.path, f.lines, most))
		}
		for _, n := range f.wide {
			wide = append(wide, fmt.Sprintf("%s:%d", f.path, n))
		}
	}
	return long, wide
}

// entries returns what a listing of the root shows: files and folders whose names do not begin with a dot.
func entries(paths []string) (names []string) {
	for _, name := range paths {
		name, _, _ = strings.Cut(name, "/")
		if !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

// ordinary is how the names of files and folders are written; remains are those that editors, Git and Go leave behind.
var (
	ordinary = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	remains  = regexp.MustCompile(`\.(orig|rej|swp|bak|tmp|test|out|prof|log)$`)
)

// strays lists the files that somebody has made by accident, by their names. hidden are the names that may begin with a
// dot.
func strays(paths, hidden []string) (found []string) {
	for _, name := range paths {
		for part := range strings.SplitSeq(name, "/") {
			if !slices.Contains(hidden, part) && (!ordinary.MatchString(part) || remains.MatchString(part)) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}
