package main

import (
	"strconv"
	"strings"
)

// graphsOf draws the graphs for which r has figures, by file name.
func graphsOf(r *results) map[string]string {
	graphs := map[string]string{}
	bars := func(name, title string, log bool, groups []barGroup) {
		if len(groups) > 0 {
			graphs[name] = drawBars(title, log, groups)
		}
	}
	bars("drain", "Drain, no-op tasks a second", false, groupsOf(r, "aof", perSecond, "drain, "))
	bars("enqueue", "Enqueue, tasks a second", false, groupsOf(r, "enqueue", perSecond, ""))
	bars("axes", "Drain, one axis at a time, tasks a second (logarithmic)", true, groupsOf(r, "drain", perSecond, ""))
	bars("network", "Through a proxy, tasks a second (logarithmic)", true, groupsOf(r, "network", perSecond, ""))
	bars("cpu", "CPU seconds of worker and server for 100,000 no-op tasks", false, groupsOf(r, "cost", whole, ""))
	bars("latency", "Latency p99, ms (logarithmic)", true, groupsOf(r, latencyTable, "p99 [ms]", ""))
	bars("peers", "Drain, AOF everysec, tasks a second (logarithmic)", true,
		groupsOf(r, peersTable, perSecond, "drain, AOF everysec"))
	if line := pointsOf(r, " pending", scriptTime); len(line) > 1 {
		graphs["growth"] = drawLine("Claim and acknowledgement: µs within the server per task", "tasks pending", line)
	}
	return graphs
}

// groupsOf makes a group of bars of each figure of a table with the given measure whose row begins with prefix, and
// drops the prefix.
func groupsOf(r *results, table, measure, prefix string) []barGroup {
	var groups []barGroup
	for _, f := range r.of(table) {
		name, ok := strings.CutPrefix(f.Row, prefix)
		if !ok || f.Measure != measure {
			continue
		}
		if name == "" {
			name = f.Row
		}
		g := barGroup{name: name}
		for i, p := range r.Peers {
			if values := f.Values[p.Name]; len(values) > 0 {
				g.bars = append(g.bars, bar{p.Name, i, spreadOf(values)})
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// pointsOf returns the figures of growth whose row ends with suffix: the number in the row, and the value.
func pointsOf(r *results, suffix, measure string) []point {
	var points []point
	for _, f := range r.of(growthTable) {
		name, ok := strings.CutSuffix(f.Row, suffix)
		x, err := strconv.ParseFloat(strings.ReplaceAll(name, ",", ""), 64)
		if ok && err == nil && f.Measure == measure {
			points = append(points, point{x, spreadOf(f.Values["delayed"])})
		}
	}
	return points
}
