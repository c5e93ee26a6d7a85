package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// report writes everything that was measured, in Markdown.
func report(r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", origin(r), legend(r))
	if len(r.of(pythonTable)) > 0 {
		fmt.Fprintf(&b, "\n## Python\n\n%s\n%s", pythonAimsTable(r), pythonText(r))
		return b.String()
	}
	if len(r.of(worstTable)) > 0 {
		fmt.Fprintf(&b, "\n## Worst cases\n\n%s", worstText(r))
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
	"enqueue": "Enqueueing", optionsTable: "Enqueueing with options",
	"drain": "Draining", outcomesTable: "Tasks that do not simply succeed",
	"aof": "Durability", "network": "Network", latencyTable: "Latency",
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
// The ranges are in a table of their own where the lines would be too wide otherwise.
func tableText(r *results, table string) string {
	figures := ordered(r.of(table))
	names := peersOf(r, figures)
	if len(names) > 3 {
		return manyPeers(figures, names)
	}
	if text := fewPeers(figures, names, spreadText, ratioText, true); fits(text) {
		return text
	}
	medians := fewPeers(figures, names, middleText, boldText, true)
	return medians + "\nRanges of the rounds:\n\n" + fewPeers(figures, names, rangeText, ratioRange, false)
}

// fewPeers writes a table with a line for each figure: its value of each peer, the ratios to each other peer, and the
// number of rounds. It leaves out lines that have no value.
func fewPeers(
	figures []*figure, names []string, value func([]float64) string, ratio func(spread, bool) string, rounds bool,
) string {
	compare := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "delayed" })
	if !slices.Contains(names, "delayed") {
		compare = nil
	}
	measure := sameMeasure(figures) // stands in the head, if it is that of all figures
	head := slices.Concat([]string{measure}, names)
	if measure == "" {
		head = slices.Concat([]string{"", ""}, names)
	}
	for _, name := range compare {
		head = append(head, "times "+name)
	}
	if rounds {
		head = append(head, "rounds")
	}
	lines := [][]string{head}
	row := ""
	for _, f := range figures {
		var cells []string
		for _, name := range names {
			cells = append(cells, value(f.Values[name]))
		}
		for _, name := range compare {
			cells = append(cells, ratio(f.better(name)))
		}
		if !slices.ContainsFunc(cells, func(c string) bool { return c != none }) {
			continue
		}
		if rounds {
			cells = append(cells, count(roundsOf(f, names)))
		}
		if measure == "" {
			cells = slices.Insert(cells, 0, f.Measure)
		}
		shown := f.Row
		if shown == row {
			shown = "" // the same as above
		}
		row = f.Row
		lines = append(lines, slices.Insert(cells, 0, shown))
	}
	if measure == "" {
		return tableOf(lines, 2)
	}
	return tableOf(lines, 1)
}

// sameMeasure returns the measure of the figures, or nothing if they have different ones.
func sameMeasure(figures []*figure) string {
	for _, f := range figures {
		if f.Measure != figures[0].Measure {
			return ""
		}
	}
	return figures[0].Measure
}

func roundsOf(f *figure, names []string) int {
	rounds := 0
	for _, name := range names {
		rounds = max(rounds, len(f.Values[name]))
	}
	return rounds
}

// manyPeers writes tables with a line for each peer and a few figures side by side.
func manyPeers(figures []*figure, names []string) string {
	var columns [][]string
	for _, f := range figures {
		column := []string{f.Row + ", " + f.Measure}
		for _, name := range names {
			cell := spreadText(f.Values[name])
			if s, ok := f.better(name); ok && name != "delayed" {
				cell += timesText(s)
			}
			column = append(column, cell)
		}
		columns = append(columns, column)
	}
	return sideBySide(slices.Concat([]string{""}, names), columns)
}

// sideBySide writes tables of as many columns as fit a line, behind a first one that all of them have. A line without
// values is left out.
func sideBySide(first []string, columns [][]string) string {
	var b strings.Builder
	for len(columns) > 0 {
		n := len(columns)
		for n > 1 && !fits(tableOf(linesOf(first, columns[:n]), 1)) {
			n--
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(tableOf(linesOf(first, columns[:n]), 1))
		columns = columns[n:]
	}
	return b.String()
}

// linesOf turns columns into lines, without those that have no value.
func linesOf(first []string, columns [][]string) [][]string {
	var lines [][]string
	for i := range first {
		line, values := []string{first[i]}, false
		for _, c := range columns {
			line = append(line, c[i])
			values = values || c[i] != none
		}
		if values {
			lines = append(lines, line)
		}
	}
	return lines
}

// tableOf writes a table whose first line is the head and whose first columns are text.
func tableOf(lines [][]string, text int) string {
	var b strings.Builder
	for i, cells := range lines {
		for _, c := range cells {
			b.WriteString(strings.TrimRight("| "+c, " ") + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", text) + strings.Repeat("---:|", len(cells)-text) + "\n")
		}
	}
	return b.String()
}

// columnsOfPage is how wide lines of docs/PERFORMANCE.md may be.
const columnsOfPage = 120

// fits reports whether no line of text is too wide.
func fits(text string) bool {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > columnsOfPage {
			return false
		}
	}
	return true
}

// wrap breaks lines that are too wide at spaces, and indents what continues an item of a list. It leaves tables alone.
func wrap(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := ""
		if strings.HasPrefix(line, "- ") {
			indent = "  "
		}
		for !strings.HasPrefix(line, "|") && !fits(line) {
			at, columns := 0, 0 // of the last space that is not too far to the right
			for i, c := range line {
				if columns > columnsOfPage {
					break
				}
				if c == ' ' && columns > len("- ") {
					at = i
				}
				columns++
			}
			if at == 0 {
				break
			}
			b.WriteString(line[:at] + "\n")
			line = indent + line[at+1:]
		}
		b.WriteString(line)
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

// none stands where a peer has no value.
const none = "–"

func spreadText(values []float64) string {
	if len(values) < 2 {
		return middleText(values)
	}
	return middleText(values) + " (" + rangeText(values) + ")"
}

// middleText is the median.
func middleText(values []float64) string {
	if len(values) == 0 {
		return none
	}
	return number(spreadOf(values).Middle)
}

// rangeText is the range of more than one value.
func rangeText(values []float64) string {
	if len(values) < 2 {
		return none
	}
	return betweenText(spreadOf(values))
}

func betweenText(s spread) string { return number(s.Low) + "–" + number(s.High) }

func ratioText(s spread, ok bool) string {
	if !ok || s.Low == s.High {
		return boldText(s, ok)
	}
	return boldText(s, ok) + " (" + betweenText(s) + ")"
}

// boldText is the median of a ratio, in bold type if rounds differ.
func boldText(s spread, ok bool) string {
	switch {
	case !ok:
		return none
	case s.Low == s.High:
		return number(s.Middle)
	}
	return "**" + number(s.Middle) + "**"
}

// ratioRange is the range of a ratio.
func ratioRange(s spread, ok bool) string {
	if !ok || s.Low == s.High {
		return none
	}
	return betweenText(s)
}

// timesText is what tables of many peers have behind a value: how many times better delayed is.
func timesText(s spread) string {
	if s.Low == s.High {
		return "; × " + number(s.Middle)
	}
	return "; × " + number(s.Middle) + " (" + betweenText(s) + ")"
}
