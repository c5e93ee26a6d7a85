package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// withinRedis is the head of the column with the longest scripts and commands.
const withinRedis = "longest runs within Redis [ms]"

// worstTable holds what `worst` measures. Only delayed is measured.
const worstTable = "worst"

// worstCommand runs the command `worst`: it brings delayed to sizes at which a script might keep Redis busy for long,
// and measures how long the scripts take and how long others wait for Redis.
func worstCommand(ctx context.Context, args []string) error {
	o := options{rounds: 1, axisRounds: 1}
	flags := measureFlags("worst", &o)
	first := flags.Bool("first", false, "give redis-server the highest priority, so that the times of its scripts do "+
		"not count other programs that use the processors; needs root")
	_ = flags.Parse(args)
	p, err := peerNamed("delayed")
	if err != nil {
		return err
	}
	o.among = []*peer{p}
	r, err := o.runner(commandLine("worst", args), o.among)
	if err != nil {
		return err
	}
	if err := r.run(ctx, worstScenarios(*first)); err != nil {
		return err
	}
	return o.output(r.results)
}

// worstScenarios returns a scenario for each case. With first, their servers run at the highest priority.
func worstScenarios(first bool) []scenario {
	all := []scenario{
		{name: "queues", take: worstQueues},
		{name: "workers", take: worstWorkers},
		{name: "scheduled", take: worstScheduled},
		{name: "archive", take: worstArchive},
		{name: "locks", take: worstLocks},
		{name: "group", take: worstGroup},
	}
	for i := range all {
		s := &all[i]
		s.peers = self
		take := s.take
		s.take = func(b *bed) error {
			if first {
				if err := syscall.Setpriority(syscall.PRIO_PROCESS, b.server.cmd.Process.Pid, -20); err != nil {
					return fmt.Errorf("-first: giving redis-server the highest priority, which needs root: %w", err)
				}
			}
			return take(b)
		}
	}
	return all
}

// worstText writes two tables with a line for each step of a case: what was reached, and who waited for how long.
func worstText(r *results) string {
	rates := [][]string{{"", tookMeasure, perSecond, cpuMeasure, commandsMeasure, ageMeasure}}
	waits := [][]string{{"", withinRedis, runsMeasure, pingMeasure, longestPing}}
	var rows []string
	for _, f := range r.of(worstTable) {
		if !slices.Contains(rows, f.Row) {
			rows = append(rows, f.Row)
		}
	}
	for _, row := range rows {
		cells := func(head []string) []string {
			line := []string{row}
			for _, measure := range head[1:] {
				line = append(line, worstCell(r, row, measure))
			}
			return line
		}
		rates, waits = append(rates, cells(rates[0])), append(waits, cells(waits[0]))
	}
	return tableOf(rates, 1) + "\n" + tableOf(waits, 2)
}

// worstCell writes what a column of worstText has in a row.
func worstCell(r *results, row, measure string) string {
	f := r.find(worstTable, row, measure)
	switch {
	case f != nil && measure == runsMeasure:
		return count(int(spreadOf(f.Values["delayed"]).High))
	case f != nil && measure == ageMeasure:
		var texts []string
		for _, v := range f.Values["delayed"] {
			texts = append(texts, number(v))
		}
		return strings.Join(texts, "; ")
	case f != nil:
		return spreadText(f.Values["delayed"])
	case measure != withinRedis:
		return none
	}
	var runs []string
	for _, f := range r.of(worstTable) {
		if name, ok := strings.CutPrefix(f.Measure, longestRuns); ok && f.Row == row && len(runs) < 2 {
			runs = append(runs, name+" "+longestText(f.Values["delayed"]))
		}
	}
	if len(runs) == 0 {
		return fmt.Sprintf("each below %.1f", slowMicros/1000.0)
	}
	return strings.Join(runs, "; ")
}

// longestText writes the three largest values.
func longestText(values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	slices.Reverse(sorted)
	var texts []string
	for _, v := range sorted[:min(len(sorted), 3)] {
		texts = append(texts, number(v))
	}
	return strings.Join(texts, ", ")
}
