// Command house measures how the packages of the root module are laid out and fails when a limit of rules.go is broken:
//
//   - imports that point up: from a package to one on a floor above it;
//   - knots: files of one package that use each other in a circle, so that none can be understood without the others;
//   - fields of structs that hold functions;
//   - long files, and wide lines of code and texts, in every module of the tree;
//   - names that the package at the root exports, and entries of the root folder;
//   - stray files, which editors, tools or slips of the keyboard have left behind.
//
// Imports, knots, fields and names are those of the files that are built on this platform, without tests.
//
//	go run ./house     # in itest: the figures
//	go run ./house -v  # and everything that was counted
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	verbose := flag.Bool("v", false, "list everything that was counted")
	flag.Parse()
	if err := run(os.Stdout, "..", ours, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// figure is one measured number and what was counted.
type figure struct {
	name   string
	number int
	limit  int
	items  []string
}

// run measures the module at dir and prints the figures. It fails after printing them if one is past its limit.
func run(out io.Writer, dir string, r rules, verbose bool) error {
	pkgs, err := load(dir)
	if err != nil {
		return err
	}
	paths, err := listFiles(dir)
	if err != nil {
		return err
	}
	files, err := readFiles(dir, paths, r.columns)
	if err != nil {
		return err
	}
	up, err := importsUp(pkgs, r.floors)
	if err != nil {
		return err
	}

	var knots, fields, exported []string
	largest := 0
	for _, p := range pkgs {
		if knot := usesOf(p).knot(); len(knot) > 0 {
			largest = max(largest, len(knot))
			knots = append(knots, fmt.Sprintf("%s: %s", p.name, strings.Join(knot, " ")))
		}
		fields = append(fields, functionFields(p)...)
		if p.name == "." {
			names := p.Types.Scope().Names()
			exported = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
		}
	}
	long, wide := tooLarge(files, r)
	root, stray := entries(paths), strays(paths, r.hidden)
	figures := []figure{
		{"imports that point up", len(up), 0, up},
		{"largest knot of files", largest, r.knot, knots},
		{"fields that hold functions", len(fields), r.fields, fields},
		{"files with too many lines", len(long), 0, long},
		{"lines with too many columns", len(wide), 0, wide},
		{"names exported by the root", len(exported), r.exported, exported},
		{"entries of the root folder", len(root), r.entries, root},
		{"stray files", len(stray), 0, stray},
	}
	if broken := printFigures(out, figures, verbose); broken > 0 {
		return fmt.Errorf("limits broken: %d of those in itest/house/rules.go", broken)
	}
	return nil
}

// printFigures returns how many figures are past their limits. It lists each item, even without verbose, where the
// limit is 0.
func printFigures(out io.Writer, figures []figure, verbose bool) (broken int) {
	for _, f := range figures {
		limit := fmt.Sprintf("  at most %d", f.limit)
		if f.number > f.limit {
			broken++
			limit += ": BROKEN"
		}
		fmt.Fprintf(out, "%-30s %5d%s\n", f.name, f.number, limit)
		if verbose || f.limit == 0 {
			for _, item := range f.items {
				fmt.Fprintf(out, "    %s\n", item)
			}
		}
	}
	return broken
}
