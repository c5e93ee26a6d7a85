package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// publishedFile holds the figures of `bench` that docs/PERFORMANCE.md shows.
const publishedFile = "published.json"

// guardTolerance is how much a ratio may fall behind the published one.
const guardTolerance = 0.15

// guarded are the scenarios of `bench` that matter most.
var guarded = []string{"enqueue 64", "enqueue 256", "enqueue batch", "drain 50", "aof off drain"}

// guardCommand runs the command `guard`: it measures again the ratios of enqueueing and draining to asynq and to the
// ceiling, all in one run, and fails when one has fallen behind.
func guardCommand(ctx context.Context, args []string) error {
	r := &runner{rounds: 7}
	var file string
	if err := parse("guard", args, r, benchPeers, func(f *flag.FlagSet) {
		f.StringVar(&file, "published", publishedFile, "figures to compare with, as publish writes them")
	}); err != nil {
		return err
	}
	published, err := readResults(file)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there are no published figures yet: run bench with -json and publish its file: %w", err)
	}
	if err != nil {
		return err
	}
	scenarios := slices.DeleteFunc(benchScenarios(), func(s scenario) bool { return !slices.Contains(guarded, s.name) })
	var lines [][]string
	var behind []string
	for attempt := range 2 { // the second attempt adds as many rounds and takes all of them into account
		if err := r.run(ctx, scenarios); err != nil {
			return err
		}
		if lines, behind = compare(published, r.results); len(lines) == 1 {
			return fmt.Errorf("%s has no ratio that guard takes; publish a whole run of bench", file)
		}
		if len(behind) == 0 {
			break
		}
		if attempt == 0 {
			fmt.Fprintf(r.log, "behind so far: %s; taking as many rounds again\n", strings.Join(behind, "; "))
		}
	}
	fmt.Printf("Published %s UTC. Ratios of delayed; medians.\n\n%s", published.Date, tableOf(lines, 1))
	if r.json != "" {
		if err := r.results.write(r.json); err != nil {
			return err
		}
	}
	if len(behind) > 0 {
		return fmt.Errorf("more than %.0f %% behind the published ratio: %s; run it again on a quiet machine, find "+
			"what made it slower with `go run . profile`, or publish the new figures",
			guardTolerance*100, strings.Join(behind, "; "))
	}
	return nil
}

// compare returns a table of the ratios of those rates that both results have, and the names of the ratios that have
// fallen by more than the tolerance.
func compare(published, now *results) (lines [][]string, behind []string) {
	lines = [][]string{{"", "published", "now", ""}}
	for _, f := range now.Figures {
		old := published.find(f.Table, f.Row, f.Measure)
		if old == nil || f.Measure != perSecond {
			continue
		}
		for _, peer := range []string{"asynq", "ceiling"} {
			was, ok := old.better(peer)
			is, ok2 := f.better(peer)
			if !ok || !ok2 {
				continue
			}
			name, mark := fmt.Sprintf("%s, %s, to %s", f.Table, f.Row, peer), "ok"
			if is.Middle < was.Middle*(1-guardTolerance) {
				mark = "**behind**"
				behind = append(behind, name)
			}
			lines = append(lines, []string{name, number(was.Middle), is.String(), mark})
		}
	}
	return lines, behind
}
