package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// publishedFile holds the figures of `bench` that docs/PERFORMANCE.md shows.
const publishedFile = "published.json"

// guardTolerance is how much a ratio may fall behind the published one.
const guardTolerance = 0.15

// guardCommand runs the command `guard`: it measures again the ratios of enqueueing and draining to asynq and to the
// ceiling, all in one run, and fails when one has fallen behind.
func guardCommand(ctx context.Context, args []string) error {
	o := options{rounds: 7, axisRounds: 1}
	flags := measureFlags("guard", &o)
	file := flags.String("published", publishedFile, "figures to compare with, as publish writes them")
	_ = flags.Parse(args)
	published, err := readResults(*file)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there are no published figures yet: run bench with -json and publish its file: %w", err)
	}
	if err != nil {
		return err
	}
	r, err := o.runner(commandLine("guard", args), benchPeers())
	if err != nil {
		return err
	}
	var checks []check
	var failed []string
	for attempt := range 2 { // the second attempt adds as many rounds and judges all of them
		if err := r.run(ctx, guardScenarios()); err != nil {
			return err
		}
		if checks = guardChecks(published, r.results); len(checks) == 0 {
			return fmt.Errorf("%s has no ratio that guard takes; publish a whole run of bench", *file)
		}
		if failed = behind(checks); len(failed) == 0 {
			break
		}
		if attempt == 0 {
			fmt.Fprintf(r.log, "behind so far: %s; taking as many rounds again\n", strings.Join(failed, "; "))
		}
	}
	if o.json != "" {
		if err := r.results.write(o.json); err != nil {
			return err
		}
	}
	fmt.Print(guardText(published, checks))
	if len(failed) > 0 {
		return fmt.Errorf("more than %.0f %% behind the published ratio: %s; run it again on a quiet machine, find "+
			"what made it slower with `go run . profile`, or publish the new figures",
			guardTolerance*100, strings.Join(failed, "; "))
	}
	return nil
}

// behind returns the names of the checks whose ratios have fallen by more than the tolerance.
func behind(checks []check) []string {
	var names []string
	for _, c := range checks {
		if c.behind() {
			names = append(names, c.name)
		}
	}
	return names
}

// guardScenarios returns the scenarios of `bench` that matter most.
func guardScenarios() []scenario {
	var chosen []scenario
	for _, s := range benchScenarios() {
		switch s.name {
		case "enqueue 64", "enqueue 256", "enqueue batch", "drain 50", "aof off drain":
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// check compares one ratio with the published one.
type check struct {
	name           string
	published, now float64 // medians
	low, high      float64 // range of the rounds now
}

// behind reports whether the ratio has fallen by more than the tolerance.
func (c check) behind() bool { return c.now < c.published*(1-guardTolerance) }

// guardChecks compares the rates that both results have.
func guardChecks(published, now *results) []check {
	var checks []check
	for _, f := range now.Figures {
		old := published.find(f.Table, f.Row, f.Measure)
		if old == nil || f.Measure != perSecond || f.Row == concurrencyRow(baseConcurrency) {
			continue // the table of durability contains the last one as well
		}
		for _, peer := range []string{"asynq", "ceiling"} {
			was, ok := old.better(peer)
			is, ok2 := f.better(peer)
			if ok && ok2 {
				checks = append(checks, check{
					fmt.Sprintf("%s, %s, to %s", title(f.Table), f.Row, peer), was.Middle,
					is.Middle, is.Low, is.High,
				})
			}
		}
	}
	return checks
}

func guardText(published *results, checks []check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Published %s UTC. Ratios of delayed; medians.\n\n| | published | now (range) | "+
		"|\n|---|---:|---:|---|\n", published.Date)
	for _, c := range checks {
		verdict := "ok"
		if c.behind() {
			verdict = "**behind**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s (%s–%s) | %s |\n", c.name, number(c.published), number(c.now), number(c.low),
			number(c.high), verdict)
	}
	return b.String()
}
