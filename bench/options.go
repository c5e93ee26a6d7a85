package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are the flags that the measuring commands share.
type options struct {
	rounds, axisRounds int
	scale              float64
	only               string
	within             time.Duration
	peers              string
	json, markdown     string
	quiet              bool
	among              []*peer // the peers from which -peers chooses; nil: all registered ones
}

// measureFlags returns the flags of a command with its defaults.
func measureFlags(name string, o *options) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ExitOnError)
	f.IntVar(&o.rounds, "rounds", o.rounds, "rounds of the figures that have an aim")
	f.IntVar(&o.axisRounds, "axis-rounds", o.axisRounds, "rounds of the other figures")
	f.DurationVar(&o.within, "within", o.within,
		"leave out later rounds, first of figures without an aim, so that it ends in this time; 0: take all")
	f.Float64Var(&o.scale, "scale", 1, "part of the usual number of tasks; 0.01 shows that everything works")
	f.StringVar(&o.only, "only", "", "regular expression: only scenarios whose name it matches")
	f.StringVar(&o.peers, "peers", "", "names separated by commas: only these peers")
	f.StringVar(&o.json, "json", "", "file for every figure of every round; publish reads it")
	f.StringVar(&o.markdown, "md", "", "file for the tables, in Markdown; stdout when empty")
	f.BoolVar(&o.quiet, "q", false, "do not say on stderr what is being done")
	return f
}

// runner returns the runner for peers, without those that were not asked for or are not installed.
func (o *options) runner(line string, peers []*peer) (*runner, error) {
	if o.rounds < 1 || o.axisRounds < 1 || o.scale <= 0 {
		return nil, errors.New("expected at least one round and a scale above 0")
	}
	r := &runner{rounds: o.rounds, axisRounds: o.axisRounds, scale: o.scale, within: o.within, log: os.Stderr}
	if o.quiet {
		r.log = io.Discard
	}
	if o.only != "" {
		var err error
		if r.only, err = regexp.Compile(o.only); err != nil {
			return nil, fmt.Errorf("-only: expected a regular expression: %w", err)
		}
	}
	if o.peers != "" {
		among := o.among
		if among == nil {
			among = allPeers()
		}
		var chosen []*peer
		for name := range strings.SplitSeq(o.peers, ",") {
			p, err := peerAmong(among, name)
			if err != nil {
				return nil, err
			}
			chosen = append(chosen, p)
		}
		peers = slices.DeleteFunc(slices.Clone(among), func(p *peer) bool { return !slices.Contains(chosen, p) })
	}
	var err error
	r.results, r.peers, err = newResults(line, peers)
	return r, err
}

// output writes what was measured.
func (o *options) output(r *results) error {
	if o.json != "" {
		if err := r.write(o.json); err != nil {
			return err
		}
	}
	text := report(r)
	if o.markdown == "" {
		fmt.Print(text)
		return nil
	}
	return os.WriteFile(o.markdown, []byte(text), 0o644)
}

// commandLine returns the command line with which a reader would repeat the command.
func commandLine(name string, args []string) string {
	return strings.Join(append([]string{"go run .", name}, args...), " ")
}
