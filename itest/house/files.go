package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
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

// readFiles reads the measured files below dir, nested modules included. It leaves out directories whose names begin
// with a dot: they hold tools.
func readFiles(dir string, columns int) ([]file, error) {
	var files []file
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		case entry.Name() != "Makefile" && !slices.Contains(measured, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f := file{path: name}
		for line := range strings.Lines(string(text)) {
			f.lines++
			if width(line) > columns {
				f.wide = append(f.wide, f.lines)
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// width counts a tab as four columns, wherever it is. It leaves out what tests of analyzers expect of a line, which has
// to stand in it.
func width(line string) int {
	line, _, _ = strings.Cut(line, "// want `")
	line = strings.TrimRight(line, " \r\n")
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// tooLarge lists files of code with more than the given number of lines, and lines with too many columns.
func tooLarge(files []file, lines int) (long, wide []string) {
	for _, f := range files {
		if f.lines > lines && path.Ext(f.path) != ".md" {
			long = append(long, fmt.Sprintf("%s: %d lines", f.path, f.lines))
		}
		for _, n := range f.wide {
			wide = append(wide, fmt.Sprintf("%s:%d", f.path, n))
		}
	}
	return long, wide
}
