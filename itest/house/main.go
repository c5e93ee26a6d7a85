// Command house measures how the packages of the root module are laid out and fails when a limit of rules.go is broken:
//
//   - imports that point up: from a package to one on a floor above it;
//   - knots: files of one package that use each other in a circle, so that none can be understood without the others;
//   - methods that stand in another file than their receiver's type;
//   - long files, and wide lines of code and texts, in every module of the tree;
//   - names that the package at the root exports.
//
// Imports, knots, methods and names are those of the files that are built on this platform, without tests.
//
// The last part of the output is a table in Markdown, for texts that compare the layout before and after a change.
//
//	go run ./house     # in itest: the figures
//	go run ./house -v  # and everything that was counted
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

func main() {
	dir := flag.String("dir", "..", "root of the module")
	verbose := flag.Bool("v", false, "list everything that was counted")
	flag.Parse()
	if err := run(os.Stdout, *dir, ours, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// unlimited is the limit of a figure that the program only shows.
const unlimited = -1

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
	files, err := readFiles(dir, r.columns)
	if err != nil {
		return err
	}
	up, err := importsUp(pkgs, r.floors)
	if err != nil {
		return err
	}

	rows, total := measure(pkgs, files)
	var knots, exported []string
	for _, p := range rows {
		if len(p.knot) > 0 {
			knots = append(knots, fmt.Sprintf("%s: %d files", p.name, len(p.knot)))
			knots = append(knots, usesOf(p.pkg).within(p.knot)...)
		}
		if p.name == "." {
			exported = exportedNames(p.pkg)
		}
	}
	long, wide := tooLarge(files, r.lines)
	figures := []figure{
		{"imports that point up", len(up), 0, up},
		{"largest knot of files", len(total.knot), r.knot, knots},
		{"methods away from their type", len(total.away), unlimited, total.away},
		{fmt.Sprintf("files past %d lines", r.lines), len(long), 0, long},
		{fmt.Sprintf("lines past %d columns", r.columns), len(wide), 0, wide},
		{"names exported by the root", len(exported), r.exported, exported},
	}
	broken := printFigures(out, figures, verbose)
	printTable(out, rows, total)
	if broken > 0 {
		return fmt.Errorf("limits broken: %d of those in itest/house/rules.go", broken)
	}
	return nil
}

// printFigures returns how many figures are past their limits. It lists each item, even without verbose, where the
// limit is 0.
func printFigures(out io.Writer, figures []figure, verbose bool) (broken int) {
	for _, f := range figures {
		limit := ""
		if f.limit != unlimited {
			limit = fmt.Sprintf("  at most %d", f.limit)
			if f.number > f.limit {
				broken++
				limit += ": BROKEN"
			}
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

// row is a package in the table. Its counts of files and lines leave out tests.
type row struct {
	pkg
	files, lines int
	knot         []string // its files
	away         []string
}

// measure returns a row for each package, in their order, and one for all of them: sums, and the largest knot.
func measure(pkgs []pkg, files []file) (rows []row, total row) {
	total.name = fmt.Sprintf("%d packages", len(pkgs))
	for _, p := range pkgs {
		r := row{pkg: p, knot: usesOf(p).knot(), away: methodsAway(p)}
		for _, f := range files {
			isCode := strings.HasSuffix(f.path, ".go") && !strings.HasSuffix(f.path, "_test.go")
			if isCode && path.Dir(f.path) == p.name {
				r.files++
				r.lines += f.lines
			}
		}
		rows = append(rows, r)
		total.files += r.files
		total.lines += r.lines
		total.away = append(total.away, r.away...)
		if len(r.knot) > len(total.knot) {
			total.knot = r.knot
		}
	}
	return rows, total
}

func printTable(out io.Writer, rows []row, total row) {
	const line = "| %-30s | %5v | %6v | %12v | %12v |\n"
	fmt.Fprintf(out, "\n"+line, "package", "files", "lines", "largest knot", "methods away")
	fmt.Fprintf(out, "|%s|%s:|%s:|%s:|%s:|\n", strings.Repeat("-", 32), strings.Repeat("-", 6), strings.Repeat("-", 7),
		strings.Repeat("-", 13), strings.Repeat("-", 13))
	for _, r := range append(rows, total) {
		fmt.Fprintf(out, line, r.name, r.files, r.lines, len(r.knot), len(r.away))
	}
}
