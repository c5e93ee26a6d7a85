package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// report writes everything that was measured, in Markdown.
func report(r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", origin(r), legend(r))
	if len(r.of(pythonTable)) > 0 {
		fmt.Fprintf(&b, "\n## Python\n\n%s\n%s", pythonAimsTable(r), pythonText(r))
		return b.String()
	}
	if len(aimsOf(r)) > 0 {
		fmt.Fprintf(&b, "\n## Aims\n\n%s", aimsTable(r))
	}
	for _, table := range tablesOf(r) {
		fmt.Fprintf(&b, "\n## %s\n\n%s", title(table), tableText(r, table))
	}
	return b.String()
}

// origin says where figures come from.
func origin(r *results) string {
	command := r.Command
	if r.Machine.Commit != "" {
		command += "` at commit `" + r.Machine.Commit
	}
	return fmt.Sprintf("%s UTC, `%s`, %.0f minutes. %s.", r.Date, command, math.Ceil(r.Minutes), r.Machine)
}

// legend says what the peers are, and which are missing.
func legend(r *results) string {
	var b strings.Builder
	for _, p := range r.Peers {
		if p.Missing != "" {
			fmt.Fprintf(&b, "- %s: not measured: %s\n", p.Name, p.Missing)
			continue
		}
		version := p.Version
		if p.Name == "ceiling" {
			version = "" // the server's
		}
		fmt.Fprintf(&b, "- **%s**: %s\n", strings.TrimSpace(p.Name+" "+version), p.About)
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

var titles = map[string]string{
	"enqueue": "Enqueueing", "drain": "Draining", "aof": "Durability", "network": "Network", latencyTable: "Latency",
	"cost":   "Cost",
	"memory": "Memory", growthTable: "Growth", "start": "Starting", "fairness": "Fairness", peersTable: "All peers",
	peersTable + " cost": "All peers: cost", peersTable + " latency": "All peers: latency",
}

func title(table string) string {
	if t := titles[table]; t != "" {
		return t
	}
	return table
}

// peersOf returns the peers that have a value in one of the figures, in the order of the results.
func peersOf(r *results, figures []*figure) []string {
	var names []string
	for _, p := range r.Peers {
		if slices.ContainsFunc(figures, func(f *figure) bool { return len(f.Values[p.Name]) > 0 }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// tableText writes one table: medians with ranges of each peer, and how many times better delayed is than each other.
func tableText(r *results, table string) string {
	figures := ordered(r.of(table))
	names := peersOf(r, figures)
	if len(names) > 3 {
		return manyPeers(figures, names)
	}
	compare := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "delayed" })
	if !slices.Contains(names, "delayed") {
		compare = nil
	}
	var b strings.Builder
	b.WriteString("| | |")
	for _, name := range names {
		fmt.Fprintf(&b, " %s |", name)
	}
	for _, name := range compare {
		fmt.Fprintf(&b, " times %s |", name)
	}
	b.WriteString(" rounds |\n|---|---|" + strings.Repeat("---:|", len(names)+len(compare)+1) + "\n")
	row := ""
	for _, f := range figures {
		shown := f.Row
		if shown == row {
			shown = "" // the same as above
		}
		row = f.Row
		fmt.Fprintf(&b, "| %s | %s |", shown, f.Measure)
		rounds := 0
		for _, name := range names {
			rounds = max(rounds, len(f.Values[name]))
			fmt.Fprintf(&b, " %s |", spreadText(f.Values[name]))
		}
		for _, name := range compare {
			fmt.Fprintf(&b, " %s |", ratioText(f.better(name)))
		}
		fmt.Fprintf(&b, " %d |\n", rounds)
	}
	return b.String()
}

// manyPeers writes tables with a line for each peer and a few figures side by side.
func manyPeers(figures []*figure, names []string) string {
	const columns = 4
	var b strings.Builder
	for chunk := range slices.Chunk(figures, columns) {
		b.WriteString("| |")
		for _, f := range chunk {
			fmt.Fprintf(&b, " %s, %s |", f.Row, f.Measure)
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(chunk)) + "\n")
		for _, name := range names {
			fmt.Fprintf(&b, "| %s |", name)
			for _, f := range chunk {
				fmt.Fprintf(&b, " %s", spreadText(f.Values[name]))
				if s, ok := f.better(name); ok && name != "delayed" {
					fmt.Fprintf(&b, "; × %s", ratioText(s, true))
				}
				b.WriteString(" |")
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// ordered puts the figures of one row together, rows in order of their first figure.
func ordered(figures []*figure) []*figure {
	var rows []string
	for _, f := range figures {
		if !slices.Contains(rows, f.Row) {
			rows = append(rows, f.Row)
		}
	}
	sorted := slices.Clone(figures)
	slices.SortStableFunc(sorted,
		func(a, b *figure) int { return slices.Index(rows, a.Row) - slices.Index(rows, b.Row) })
	return sorted
}

func spreadText(values []float64) string {
	switch s := spreadOf(values); len(values) {
	case 0:
		return "–"
	case 1:
		return number(s.Middle)
	default:
		return fmt.Sprintf("%s (%s–%s)", number(s.Middle), number(s.Low), number(s.High))
	}
}

func ratioText(s spread, ok bool) string {
	if !ok {
		return "–"
	}
	if s.Low == s.High {
		return number(s.Middle)
	}
	return fmt.Sprintf("**%s** (%s–%s)", number(s.Middle), number(s.Low), number(s.High))
}
