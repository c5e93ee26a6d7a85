package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// publishCommand runs the command `publish`: it fills the tables of docs/PERFORMANCE.md with the figures from files
// that bench, peers, python and worst wrote, and draws the graphs again. Text outside of the markers stays unchanged.
func publishCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("publish", flag.ExitOnError)
	docs := flags.String("docs", "../docs", "folder of PERFORMANCE.md")
	published := flags.String("published", publishedFile,
		"file that guard compares with; written from the file of bench")
	python := flags.String("published-python", "published-python.json",
		"where the figures of the file of python are kept")
	_ = flags.Parse(args)
	if flags.NArg() == 0 {
		return errors.New("expected files that `bench -json`, `peers -json`, `python -json` or `worst -json` wrote")
	}
	page := filepath.Join(*docs, "PERFORMANCE.md")
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := string(b)
	graphs := map[string]string{}
	for _, file := range flags.Args() {
		r, err := readResults(file)
		if err != nil {
			return err
		}
		kind := kindOf(r)
		if text, err = fillPage(text, kind, r); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		maps.Copy(graphs, graphsOf(r))
		if kept := map[string]string{"bench": *published, "python": *python}[kind]; kept != "" {
			if err := r.write(kept); err != nil {
				return err
			}
		}
	}
	folder := filepath.Join(*docs, "performance")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, svg := range graphs {
		if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// kindOf tells the results of `bench` from those of other commands.
func kindOf(r *results) string {
	switch {
	case slices.Contains(tablesOf(r), peersTable):
		return "peers"
	case slices.Contains(tablesOf(r), pythonTable):
		return "python"
	case slices.Contains(tablesOf(r), worstTable):
		return "worst"
	}
	return "bench"
}

// fillPage puts every table of r where the page has a marker for it.
func fillPage(text, kind string, r *results) (string, error) {
	parts := map[string]string{"origin " + kind: origin(r) + "\n\n" + legend(r)}
	switch kind {
	case "python":
		parts["python aims"], parts["python"] = pythonAimsTable(r), pythonText(r)
	case "worst":
		parts = map[string]string{"origin worst": origin(r), "worst": worstText(r)}
	default:
		parts["worse "+kind] = worse(r)
		for _, table := range tablesOf(r) {
			parts[table] = tableText(r, table)
		}
	}
	if kind == "bench" {
		parts["aims"] = aimsTable(r)
		parts["not reached"] = notReached(r)
	}
	var err error
	for name, part := range parts {
		if text, err = fill(text, name, part); err != nil {
			return "", err
		}
	}
	return text, nil
}

// fill replaces the text between <!-- begin: name --> and <!-- end: name -->, and breaks its long lines.
func fill(text, name, part string) (string, error) {
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("expected the lines %q and %q where the table is to stand", strings.TrimSpace(begin), end)
	}
	return before + begin + "\n" + strings.TrimSpace(wrap(part)) + "\n\n" + end + after, nil
}

// notReached names the aims that delayed misses.
func notReached(r *results) string {
	var b strings.Builder
	for _, v := range aimsOf(r) {
		if !v.reached {
			fmt.Fprintf(&b, "- %s: found %s.\n", v.text, number(v.found.Middle))
		}
	}
	if b.Len() == 0 {
		return "Every aim was reached in this run."
	}
	return b.String()
}

// worse names the figures in which delayed is behind a peer that can be used in practice.
func worse(r *results) string {
	var b strings.Builder
	for _, f := range r.Figures {
		for _, p := range r.Peers {
			if p.Name == "delayed" || p.Name == "ceiling" {
				continue
			}
			if s, ok := f.better(p.Name); ok && s.Middle < 1 {
				fmt.Fprintf(&b, "- %s, %s, %s: %s; %s %s.\n", title(f.Table), f.Row, f.Measure,
					spreadText(f.Values["delayed"]), p.Name, spreadText(f.Values[p.Name]))
			}
		}
	}
	if b.Len() == 0 {
		return "In none of the figures of this run."
	}
	return b.String()
}
