package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report writes everything that was measured, in Markdown.
func report(r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s", origin(r), legend(r))
	for _, table := range tablesOf(r) {
		fmt.Fprintf(&b, "\n## %s\n\n%s", table, tableText(r, table))
	}
	return b.String()
}

// origin describes where figures come from.
func origin(r *results) string {
	command := r.Command
	if r.Machine.Commit != "" {
		command += "` at commit `" + r.Machine.Commit
	}
	return fmt.Sprintf("%s UTC, `%s`, %.0f minutes.\n%s.", r.Date, command, math.Ceil(r.Minutes), r.Machine)
}

// legend describes the peers, and names those that are missing.
func legend(r *results) string {
	var b strings.Builder
	for _, p := range r.Peers {
		if p.Missing != "" {
			fmt.Fprintf(&b, "- %s: not measured: %s\n", p.Name, p.Missing)
			continue
		}
		fmt.Fprintf(&b, "- **%s %s**: %s\n", p.Name, p.Version, p.About)
	}
	return b.String()
}

// tablesOf returns the tables of r in the order in which they were begun.
func tablesOf(r *results) []string {
	var tables []string
	for _, f := range r.Figures {
		if !slices.Contains(tables, f.Table) {
			tables = append(tables, f.Table)
		}
	}
	return tables
}

// none stands where a peer has no value.
const none = "–"

// tableText writes one table: a line for each figure, with the median of each peer and, behind ×, how many times better
// delayed is, with the range of the rounds in brackets if it differs and there are few peers.
func tableText(r *results, table string) string {
	if table == worstTable {
		return worstText(r)
	}
	var names, rows []string
	var figures []*figure
	for _, f := range r.Figures {
		if f.Table == table {
			figures = append(figures, f)
			rows = append(rows, f.Row)
		}
	}
	// The figures of one row stand together, where the first of them was taken.
	at := func(f *figure) int { return slices.Index(rows, f.Row) }
	slices.SortStableFunc(figures, func(a, b *figure) int { return at(a) - at(b) })
	for _, p := range r.Peers {
		if slices.ContainsFunc(figures, func(f *figure) bool { return len(f.Values[p.Name]) > 0 }) {
			names = append(names, p.Name)
		}
	}
	lines := [][]string{slices.Concat([]string{""}, names)}
	for _, f := range figures {
		line := []string{f.Row + ", " + f.Measure}
		for _, name := range names {
			line = append(line, cell(f, name, len(names) < 4))
		}
		lines = append(lines, line)
	}
	return tableOf(lines, 1)
}

// cell writes the value of one peer, with the range of the ratios if there is space for it.
func cell(f *figure, peer string, ranges bool) string {
	s := spreadOf(f.Values[peer])
	if math.IsNaN(s.Middle) {
		return none
	}
	text := number(s.Middle)
	if ratio, ok := f.better(peer); ok && peer != "delayed" && ranges {
		return text + "; × " + ratio.String()
	} else if ok && peer != "delayed" {
		return text + "; × " + number(ratio.Middle)
	}
	if len(f.Values) == 1 { // delayed alone
		return s.String()
	}
	return text
}

// String writes the median, with the range in brackets.
func (s spread) String() string {
	if s.Low == s.High {
		return number(s.Middle)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Middle), number(s.Low), number(s.High))
}

// tableOf writes a table whose first line is the head and whose first columns are text.
func tableOf(lines [][]string, text int) string {
	var b strings.Builder
	for i, cells := range lines {
		b.WriteString("| " + strings.TrimSpace(strings.Join(cells, " | ")) + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", text) + strings.Repeat("---:|", len(cells)-text) + "\n")
		}
	}
	return b.String()
}

// worse names the figures in which delayed is behind a peer that can be used in practice.
func worse(r *results) string {
	var b strings.Builder
	for _, f := range r.Figures {
		for _, p := range r.Peers {
			if s, ok := f.better(p.Name); ok && s.Middle < 1 && p.Name != "ceiling" {
				own, other := spreadOf(f.Values["delayed"]), spreadOf(f.Values[p.Name])
				fmt.Fprintf(&b, "- %s, %s: %s; %s %s.\n", f.Row, f.Measure, number(own.Middle), p.Name,
					number(other.Middle))
			}
		}
	}
	if b.Len() == 0 {
		return "None in this run."
	}
	return b.String()
}

// publishCommand runs the command `publish`: it fills the tables of docs/PERFORMANCE.md with the figures from files
// that bench, peers and worst wrote. Text outside of the markers stays unchanged.
func publishCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("publish", flag.ExitOnError)
	docs := flags.String("docs", "../docs", "folder of PERFORMANCE.md")
	published := flags.String("published", publishedFile, "file for the figures of bench, with which guard compares")
	_ = flags.Parse(args)
	if flags.NArg() == 0 {
		return errors.New("expected files that `bench -json`, `peers -json` or `worst -json` wrote")
	}
	page := filepath.Join(*docs, "PERFORMANCE.md")
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := string(b)
	for _, file := range flags.Args() {
		r, err := readResults(file)
		if err != nil {
			return err
		}
		if text, err = fillPage(text, r); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if kindOf(r) == "bench" {
			if err := r.write(*published); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// kindOf returns the command that took results.
func kindOf(r *results) string {
	if table := r.Figures[0].Table; table == peersTable || table == worstTable {
		return table
	}
	return "bench"
}

// fillPage puts every table of r where the page has a marker for it.
func fillPage(text string, r *results) (string, error) {
	kind := kindOf(r)
	parts := map[string]string{"origin " + kind: origin(r)}
	if kind != worstTable {
		parts["worse "+kind] = worse(r)
	}
	for _, table := range tablesOf(r) {
		parts[table] = tableText(r, table)
	}
	for name, part := range parts {
		begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			return "", fmt.Errorf("expected %q and %q around the place of a table", strings.TrimSpace(begin), end)
		}
		text = before + begin + strings.TrimSpace(part) + "\n" + end + after
	}
	return text, nil
}
