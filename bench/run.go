package main

import (
	"context"
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

// scenario is one measurement that each peer takes in turn, on a fresh server each time; it yields one or more figures.
type scenario struct {
	name   string        // table and row, for -only and for the progress
	peers  []string      // the peers that take part; nil: all
	aof    string        // durability; "" is everysec
	delay  time.Duration // that a proxy adds in each direction; 0: no proxy
	awake  bool          // keep the cores awake
	rounds int           // rounds at most; 0: as many as -rounds says
	take   func(*bed)
}

// runner runs scenarios in rounds, and within a round each scenario with each peer in turn, so that a change of the
// machine's speed affects all of them.
type runner struct {
	results *results
	peers   []*peer
	rounds  int
	within  time.Duration // for all rounds after the first; 0: no limit
	scale   float64       // of the number of tasks
	only    *regexp.Regexp
	json    string
	log     io.Writer
}

// parse reads the flags of a command that measures the named peers, adds those that more adds, and leaves out peers
// that are not installed.
func parse(name string, args []string, r *runner, peers []string, more func(*flag.FlagSet)) error {
	r.log = os.Stderr
	f := flag.NewFlagSet(name, flag.ExitOnError)
	f.IntVar(&r.rounds, "rounds", r.rounds, "rounds of each figure")
	f.DurationVar(&r.within, "within", r.within, "begin no later round after this time; 0: take all")
	f.Float64Var(&r.scale, "scale", 1, "part of the usual number of tasks; 0.01 shows that everything works")
	f.StringVar(&r.json, "json", "", "file for every figure of every round; publish reads it")
	only := f.String("only", "", "regular expression: only scenarios whose name it matches")
	chosen := f.String("peers", strings.Join(peers, ","), "names separated by commas: only these peers")
	if more != nil {
		more(f)
	}
	_ = f.Parse(args)
	if r.rounds < 1 || r.scale <= 0 {
		return errors.New("expected at least one round and a scale above 0")
	}
	var err error
	if r.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: expected a regular expression: %w", err)
	}
	var some []*peer
	for name := range strings.SplitSeq(*chosen, ",") {
		p, err := peerNamed(name)
		if err != nil {
			return err
		}
		some = append(some, p)
	}
	// A reader repeats the command with this line.
	line := strings.Join(append([]string{"go run .", name}, args...), " ")
	r.results, r.peers, err = newResults(line, some)
	return err
}

// run takes all rounds of the scenarios.
func (r *runner) run(ctx context.Context, scenarios []scenario) error {
	scenarios = slices.DeleteFunc(slices.Clone(scenarios),
		func(s scenario) bool { return !r.only.MatchString(s.name) })
	begin, leftOut := time.Now(), 0
	for round := range r.rounds {
		for i := range scenarios {
			s := &scenarios[i]
			switch {
			case s.rounds > 0 && round >= s.rounds:
			case round > 0 && r.within > 0 && time.Since(begin) > r.within:
				leftOut++
			default:
				if err := r.turn(ctx, s, round); err != nil {
					return err
				}
			}
		}
		fmt.Fprintf(r.log, "round %d done after %.0f s\n", round+1, time.Since(begin).Seconds())
	}
	if leftOut > 0 {
		fmt.Fprintf(r.log, "%d turns were left out, to end within %v\n", leftOut, r.within)
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
		stop, err := keepAwake()
		if err != nil {
			return err
		}
		defer stop()
	}
	peers := slices.Clone(r.peers)
	if round%2 == 1 {
		slices.Reverse(peers)
	}
	for _, p := range peers {
		if s.peers != nil && !slices.Contains(s.peers, p.name) {
			continue
		}
		begin := time.Now()
		err := r.measure(ctx, s, p)
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err != nil && !errors.Is(err, errNone): // else the peer has no such call
			return fmt.Errorf("%s: %s: %w", s.name, p.name, err)
		}
		fmt.Fprintf(r.log, "  %d  %-34s %-10s %5.1f s\n", round+1, s.name, p.name, time.Since(begin).Seconds())
	}
	return nil
}

func (r *runner) measure(ctx context.Context, s *scenario, p *peer) (err error) {
	b, err := makeBed(ctx, p, s.aof, s.delay)
	if err != nil {
		return err
	}
	defer b.close()
	defer recoverFailure(&err)
	b.scale, b.results = r.scale, r.results
	s.take(b)
	return nil
}

// output prints what was measured, and keeps it in the file of -json.
func (r *runner) output() error {
	fmt.Print(report(r.results))
	if r.json == "" {
		return nil
	}
	return r.results.write(r.json)
}
