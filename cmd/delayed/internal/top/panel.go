package top

import (
	"slices"
	"strings"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

const (
	// tallScreen is how many lines a terminal has that also shows a panel.
	tallScreen = 32
	panelLines = 10
	chartLines = 6
)

// drawPanel writes more about the selected queue: a chart of its runs, and how long tasks wait and run.
func (s *queuesScreen) drawPanel(c *canvas, q *queueRow) {
	f := &q.flow.flow
	c.rule()
	c.say(term.C(" "+term.Clip(q.Name, 40), term.Bold), term.C("  runs and failures, last "+
		spanOf[s.m.span].name+", a bar each "+term.Duration(spanOf[s.m.span].step), term.Dim))
	facts := s.facts(q)
	runs := s.chart(f.runs[:])
	failed := s.chart(f.failed[:])
	for i := range chartLines {
		cells := []term.Cell{term.C(" "), term.C(runs[i], term.Green), term.C("   "), term.C(failed[i], term.Red)}
		if i < len(facts) {
			cells = append(cells, facts[i]...)
		}
		c.say(cells...)
	}
	c.say(term.C(" "+term.Pad("runs, most "+term.Number(int64(slices.Max(f.runs[:]))), 2*bars)+"   failures, most "+
		term.Number(int64(slices.Max(f.failed[:]))), term.Dim))
}

// facts are what stands beside the charts.
func (s *queuesScreen) facts(q *queueRow) [][]term.Cell {
	f := &q.flow.flow
	field := func(name string, cells ...term.Cell) []term.Cell {
		return append([]term.Cell{term.C("   "+term.Pad(name, 10), term.Dim)}, cells...)
	}
	quantiles := func(p50, p95 term.Cell) []term.Cell {
		return []term.Cell{term.C("p50 ", term.Dim), p50, term.C("  p95 ", term.Dim), p95}
	}
	return [][]term.Cell{
		field("wait", quantiles(lapse(f.wait50), lapse(f.wait95))...),
		field("run", quantiles(lapse(f.run50), lapse(f.run95))...),
		field("runs", term.Amount(f.total), term.C("  failed ", term.Dim), term.Amount(f.failures, term.Red)),
		field("today", term.Amount(q.Today.Processed), term.C("  failed ", term.Dim),
			term.Amount(q.Today.Failed, term.Red)),
		field("groups", term.Amount(q.Groups), term.C("  completed ", term.Dim), term.Amount(q.Completed)),
		field("suspects", term.Amount(q.Suspects, term.Yellow)),
	}
}

// chart draws numbers as bars of chartLines lines, two columns wide each.
func (s *queuesScreen) chart(values []uint64) []string {
	levels := []rune(s.m.look.heights())
	steps := uint64(len(levels) * chartLines)
	top := max(slices.Max(values), 1)
	lines := make([]string, chartLines)
	for i := range lines {
		floor := uint64((chartLines - 1 - i) * len(levels)) // steps below this line
		var b strings.Builder
		for _, v := range values {
			high := (v*steps + top - 1) / top
			switch {
			case high <= floor && i == chartLines-1:
				b.WriteString(strings.Repeat(s.m.look.pick("▁", "_"), 2)) // the ground
			case high <= floor:
				b.WriteString("  ")
			default:
				b.WriteString(strings.Repeat(string(levels[min(high-floor, uint64(len(levels)))-1]), 2))
			}
		}
		lines[i] = b.String()
	}
	return lines
}
