package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// metricsView is what handlers have done from one time to another.
type metricsView struct {
	Per       string              `json:"per"`  // second, minute or day
	From      *time.Time          `json:"from"` // the beginning of the first second, minute or day
	To        *time.Time          `json:"to"`   // the beginning of the last one, which is not over yet
	Functions []functionStatsJSON `json:"functions"`
	Times     []timeStatsJSON     `json:"times"` // without those in which nothing has run
}

// functionStatsJSON is what the handlers of one function have done.
type functionStatsJSON struct {
	Queue    string `json:"queue"`
	Function string `json:"function"` // path; "" is for all functions that found no room; see inspect.Sample
	figuresJSON
	Graph []int `json:"graph"` // runs in each second, minute or day from from to to
}

// timeStatsJSON is what all handlers have done in one second, minute or day.
type timeStatsJSON struct {
	At *time.Time `json:"at"` // its beginning
	figuresJSON
}

// figuresJSON counts runs.
type figuresJSON struct {
	Runs     int        `json:"runs"`     // handlers that have returned, or whose arguments did not fit
	Failed   int        `json:"failed"`   // of these, those that count as failures
	Archived int        `json:"archived"` // of these, those that are not tried again
	Wait     spreadJSON `json:"wait"`     // how long tasks waited for a worker, from when they could start
	Run      spreadJSON `json:"run"`      // how long handlers took
}

// spreadJSON is how durations are spread. Quantiles are exact to a quarter.
type spreadJSON struct {
	Mean float64 `json:"mean_seconds"`
	P50  float64 `json:"p50_seconds"`
	P95  float64 `json:"p95_seconds"`
}

func spreadOf(h *inspect.Histogram) spreadJSON {
	n := h.Count()
	if n == 0 {
		return spreadJSON{}
	}
	return spreadJSON{h.Sum().Seconds() / float64(n), seconds(h.Quantile(0.5)), seconds(h.Quantile(0.95))}
}

func figuresOf(s *inspect.Sample) figuresJSON {
	return figuresJSON{int(s.Runs), int(s.Failed), int(s.Archived), spreadOf(&s.Wait), spreadOf(&s.Run)}
}

// statsPer is what --per may be.
type statsPer struct {
	name  string
	grain inspect.Grain
	step  time.Duration
	last  time.Duration // if --last does not say how far back
	most  time.Duration // that Redis keeps
}

var statsPers = []statsPer{
	{"second", inspect.Seconds, time.Second, time.Minute, time.Hour},
	{"minute", inspect.Minutes, time.Minute, time.Hour, 24 * time.Hour},
	{"day", inspect.Days, 24 * time.Hour, 14 * 24 * time.Hour, 90 * 24 * time.Hour},
}

// parsePer reads --per and --last.
func parsePer(name string, last time.Duration) (statsPer, error) {
	i := slices.IndexFunc(statsPers, func(p statsPer) bool { return p.name == strings.TrimSuffix(name, "s") })
	if i < 0 {
		return statsPer{}, usagef("--per %s: expected second, minute or day", quote(name))
	}
	per := statsPers[i]
	if last == 0 {
		return per, nil
	}
	if last < per.step || last > per.most {
		return statsPer{}, usagef("--last %s: expected %s to %s, which is how long Redis keeps each %s",
			term.Duration(last), term.Duration(per.step), term.Duration(per.most), per.name)
	}
	per.last = last
	return per, nil
}

// metrics reads what handlers have done.
func (a *app) metrics(ctx context.Context, per statsPer, function string, names []string) (view, error) {
	queues, err := a.described(ctx, names)
	if err != nil {
		return nil, err
	}
	v := &metricsView{Per: per.name, Functions: []functionStatsJSON{}, Times: []timeStatsJSON{}}
	if len(queues) == 0 {
		return v, nil
	}
	to := queues[0].At.UTC().Truncate(per.step) // by Redis's clock
	from := to.Add(per.step - per.last).Truncate(per.step)
	v.From, v.To = stamp(from), stamp(to)
	means := inspect.Filter{Function: function}
	times := map[time.Time]*inspect.Sample{}
	for i := range queues {
		samples, err := a.ins.Metrics(ctx, queues[i].Name, per.grain, from, to)
		if err != nil {
			return nil, err
		}
		sums, graphs := map[string]*inspect.Sample{}, map[string][]int{}
		for j := range samples {
			s := &samples[j]
			step := int(s.At.Sub(from) / per.step)
			if steps := int(to.Sub(from)/per.step) + 1; step < 0 || step >= steps ||
				!means.Match(&inspect.Task{Contents: inspect.Contents{Function: s.Function}}, to) {
				continue
			} else if sums[s.Function] == nil {
				sums[s.Function], graphs[s.Function] = &inspect.Sample{}, make([]int, steps)
			}
			at := s.At.UTC()
			if times[at] == nil {
				times[at] = &inspect.Sample{}
			}
			sums[s.Function].Merge(s)
			times[at].Merge(s)
			graphs[s.Function][step] += int(s.Runs)
		}
		for _, path := range sorted(sums) {
			v.Functions = append(v.Functions,
				functionStatsJSON{queues[i].Name, path, figuresOf(sums[path]), graphs[path]})
		}
	}
	slices.SortStableFunc(v.Functions, func(a, b functionStatsJSON) int { return cmp.Compare(b.Runs, a.Runs) })
	for at, s := range times {
		v.Times = append(v.Times, timeStatsJSON{stamp(at), figuresOf(s)})
	}
	slices.SortFunc(v.Times, func(a, b timeStatsJSON) int { return a.At.Compare(*b.At) })
	return v, nil
}

// described describes the given queues, or all of them.
func (a *app) described(ctx context.Context, names []string) (queues []inspect.Queue, err error) {
	if len(names) == 0 {
		return a.ins.Queues(ctx)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		q, err := a.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

const (
	graphColumns = 20
	mostTimes    = 30 // rows of the newest times that people see; JSON has all
)

func (v *metricsView) print(p *term.Page) {
	if len(v.Functions) == 0 {
		p.Say(term.C("Nothing has run in that time, or only workers in Python and legacy workers.", term.Dim))
		return
	}
	figures := func(f *figuresJSON) []term.Cell {
		return []term.Cell{
			amount(f.Runs), amount(f.Failed, term.Red), term.C(took(f.Wait.P50)), term.C(took(f.Wait.P95)),
			term.C(took(f.Run.P50)), term.C(took(f.Run.P95)),
		}
	}
	columns := []term.Column{
		number("RUNS"), number("FAILED"), spare("WAIT P50", 4), number("WAIT P95"), spare("RUN P50", 3),
		number("RUN P95"),
	}
	names := []term.Column{{Name: "QUEUE", Flex: true, Drop: 1}, {Name: "FUNCTION", Flex: true}}
	t := term.NewTable(append(append(names,
		columns...), term.Column{Name: "RUNS PER " + strings.ToUpper(v.Per), Drop: 2})...)
	for i := range v.Functions {
		f := &v.Functions[i]
		name := inspect.ShortName(f.Function)
		if name == "" {
			name = "(others)"
		}
		row := append([]term.Cell{term.C(f.Queue, term.Bold), term.C(name)}, figures(&f.figuresJSON)...)
		t.Row(append(row, term.C(term.Spark(f.Graph, graphColumns), term.Green))...)
	}
	p.Table(t)
	p.Space()
	t = term.NewTable(append([]term.Column{{Name: strings.ToUpper(v.Per) + " (UTC)"}}, columns...)...)
	layout := map[string]string{"second": time.TimeOnly, "minute": "2006-01-02 15:04", "day": time.DateOnly}[v.Per]
	times := v.Times[max(len(v.Times)-mostTimes, 0):]
	for i := range times {
		t.Row(append([]term.Cell{term.C(times[i].At.Format(layout))}, figures(&times[i].figuresJSON)...)...)
	}
	p.Table(t)
	if n := len(v.Times) - len(times); n > 0 {
		p.Say(term.C("and "+count(n, "earlier "+v.Per)+": --json has all", term.Dim))
	}
}
