package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"time"
)

// scenario is one measurement that each peer takes in turn, on a fresh server each time; it yields one or more figures.
type scenario struct {
	name   string        // table and row, for -only and for the progress
	peers  []string      // the peers that take part; nil: all
	aof    string        // durability; "" is everysec
	delay  time.Duration // of a proxy in each direction; bare when hasProxy is false
	proxy  bool
	awake  bool // keep the cores awake
	rounds int  // number of rounds; 0: as many as the axes have
	take   func(*bed) error
}

// runner runs scenarios in rounds, and within a round each scenario with each peer in turn, so that a change of the
// machine's speed affects all of them.
type runner struct {
	results    *results
	peers      []*peer
	rounds     int // of the figures that the aims name
	axisRounds int // of the others
	scale      float64
	only       *regexp.Regexp
	within     time.Duration // for all rounds after the first; 0: no limit
	log        io.Writer
}

// aimed is the number of rounds of scenarios that the aims name.
const aimed = -1

func (r *runner) roundsOf(s *scenario) int {
	switch s.rounds {
	case aimed:
		return r.rounds
	case 0:
		return r.axisRounds
	default:
		return min(s.rounds, r.axisRounds)
	}
}

func (r *runner) run(ctx context.Context, scenarios []scenario) error {
	if r.only != nil {
		scenarios = slices.DeleteFunc(slices.Clone(scenarios),
			func(s scenario) bool { return !r.only.MatchString(s.name) })
	}
	begin := time.Now()
	p := newPlan(r, scenarios)
	for round := range max(r.rounds, r.axisRounds) {
		for i := range scenarios {
			s := &scenarios[i]
			if round >= r.roundsOf(s) {
				continue
			}
			turn := time.Now()
			if round > 0 && !p.fits(i, turn.Sub(begin)) {
				p.leftOut++
				fmt.Fprintf(r.log, "  %d  %-34s left out\n", round+1, s.name)
				continue
			}
			if err := r.turn(ctx, s, round); err != nil {
				return err
			}
			p.took(i, time.Since(turn))
		}
		fmt.Fprintf(r.log, "round %d done after %.0f s\n", round+1, time.Since(begin).Seconds())
	}
	if p.leftOut > 0 {
		fmt.Fprintf(r.log, "%d turns left out, to end within %v; the tables say how many rounds each figure has\n",
			p.leftOut, r.within)
	}
	r.results.Minutes = time.Since(begin).Minutes()
	if len(r.results.Figures) == 0 {
		return errors.New("nothing was measured; -only names no scenario of this command, or no peer is installed")
	}
	return nil
}

var errInterrupted = errors.New("interrupted; nothing was written")

// turn runs one scenario with every peer. In every second round the peers come in the opposite order.
func (r *runner) turn(ctx context.Context, s *scenario, round int) error {
	if s.awake {
		a, err := keepAwake()
		if err != nil {
			return err
		}
		defer a.stop()
	}
	peers := slices.Clone(r.peers)
	if round%2 == 1 {
		slices.Reverse(peers)
	}
	for _, p := range peers {
		if s.peers != nil && !slices.Contains(s.peers, p.name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return errInterrupted
		}
		begin := time.Now()
		if err := r.measure(ctx, s, p); err != nil {
			if ctx.Err() != nil {
				return errInterrupted
			}
			return fmt.Errorf("%s: %s: %w", s.name, p.name, err)
		}
		fmt.Fprintf(r.log, "  %d  %-34s %-10s %5.1f s\n", round+1, s.name, p.name, time.Since(begin).Seconds())
	}
	return nil
}

func (r *runner) measure(ctx context.Context, s *scenario, p *peer) error {
	delay := bare
	if s.proxy {
		delay = s.delay
	}
	aof := s.aof
	if aof == "" {
		aof = aofEverysec
	}
	b, err := makeBed(p, aof, delay)
	if err != nil {
		return err
	}
	defer b.close()
	defer context.AfterFunc(ctx, b.abort)()
	b.scale = r.scale
	b.record = func(table, row, measure string, less bool, value float64) {
		r.results.add(table, row, measure, less, p.name, value)
	}
	b.middle = func(table, row, measure, peer string) float64 {
		f := r.results.find(table, row, measure)
		if f == nil {
			return math.NaN()
		}
		return spreadOf(f.Values[peer]).Middle
	}
	if err := s.take(b); !errors.Is(err, errNone) {
		return err
	}
	return nil // the peer has no such call
}
