package document

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// Metrics is what handlers have done from one time to another.
type Metrics struct {
	Per       string          `json:"per"`  // second, minute or day
	From      *time.Time      `json:"from"` // the beginning of the first second, minute or day
	To        *time.Time      `json:"to"`   // the beginning of the last one, which is not over yet
	Functions []FunctionStats `json:"functions"`
	Times     []TimeStats     `json:"times"` // without those in which nothing has run
}

// FunctionStats is what the handlers of one function have done.
type FunctionStats struct {
	Queue    string `json:"queue"`
	Function string `json:"function"` // path; "" is for all functions that found no room; see inspect.Sample
	Figures
	Graph []int `json:"graph"` // runs in each second, minute or day from from to to
}

// TimeStats is what all handlers have done in one second, minute or day.
type TimeStats struct {
	At *time.Time `json:"at"` // its beginning
	Figures
}

// Figures counts runs.
type Figures struct {
	Runs     int    `json:"runs"`     // handlers that have returned, or whose arguments did not fit
	Failed   int    `json:"failed"`   // of these, those that count as failures
	Archived int    `json:"archived"` // of these, those that are not tried again
	Wait     Spread `json:"wait"`     // how long tasks waited for a worker, from when they could start
	Run      Spread `json:"run"`      // how long handlers took
}

// Spread is how durations are spread. Quantiles are exact to a quarter.
type Spread struct {
	Mean float64 `json:"mean_seconds"`
	P50  float64 `json:"p50_seconds"`
	P95  float64 `json:"p95_seconds"`
}

func spreadOf(h *inspect.Histogram) Spread {
	n := h.Count()
	if n == 0 {
		return Spread{}
	}
	return Spread{h.Sum().Seconds() / float64(n), h.Quantile(0.5).Seconds(), h.Quantile(0.95).Seconds()}
}

func figuresOf(s *inspect.Sample) Figures {
	//nolint:gosec // nobody runs so many tasks
	return Figures{int(s.Runs), int(s.Failed), int(s.Archived), spreadOf(&s.Wait), spreadOf(&s.Run)}
}

// Per is a grain of Metrics, and how far back they go.
type Per struct {
	Name string // second, minute or day
	Last time.Duration

	grain inspect.Grain
	step  time.Duration
	most  time.Duration // that Redis keeps
}

var pers = []Per{
	{"second", time.Minute, inspect.Seconds, time.Second, time.Hour},
	{"minute", time.Hour, inspect.Minutes, time.Minute, 24 * time.Hour},
	{"day", 14 * 24 * time.Hour, inspect.Days, 24 * time.Hour, 90 * 24 * time.Hour},
}

// A PerError names which of the values that ParsePer was given is wrong.
type PerError struct {
	Last bool // it is how far back; else the name
	text string
}

func (e *PerError) Error() string { return e.text }

// ParsePer returns the grain with a name, second, minute or day, that goes back so far; 0: a minute, an hour, or 14
// days. Its error is a *PerError.
func ParsePer(name string, last time.Duration) (Per, error) {
	i := slices.IndexFunc(pers, func(p Per) bool { return p.Name == strings.TrimSuffix(name, "s") })
	if i < 0 {
		text := strconv.Quote(call.Clip(name, 100)) + ": expected second, minute or day"
		return Per{}, &PerError{text: text}
	}
	per := pers[i]
	if last == 0 {
		return per, nil
	}
	if last < per.step || last > per.most {
		return Per{}, &PerError{true, fmt.Sprintf("%s: expected %s to %s, which is how long Redis keeps each %s",
			call.FormatDuration(last), call.FormatDuration(per.step), call.FormatDuration(per.most), per.Name)}
	}
	per.Last = last
	return per, nil
}

// ReadMetrics reads what handlers of queues have done; only those of a function, if one is given by its path or the end
// of it.
func ReadMetrics(
	ctx context.Context, ins *inspect.Inspector, per Per, function string, queues []inspect.Queue,
) (Metrics, error) {
	v := Metrics{Per: per.Name, Functions: []FunctionStats{}, Times: []TimeStats{}}
	if len(queues) == 0 {
		return v, nil
	}
	to := queues[0].At.UTC().Truncate(per.step) // by Redis's clock
	from := to.Add(per.step - per.Last).Truncate(per.step)
	v.From, v.To = Stamp(from), Stamp(to)
	times := make([]inspect.Sample, int(to.Sub(from)/per.step)+1)
	for i := range queues {
		samples, err := ins.Metrics(ctx, queues[i].Name, per.grain, from, to)
		if err != nil {
			return Metrics{}, err
		}
		samples = slices.DeleteFunc(samples, func(s inspect.Sample) bool {
			return function != "" && !(&inspect.Function{Path: s.Function}).IsNamed(function)
		})
		series := inspect.SeriesOf(samples, from, per.step, len(times))
		for j := range times {
			times[j].Merge(&series.Buckets[j])
		}
		for _, path := range slices.Sorted(maps.Keys(series.Functions)) {
			f := series.Functions[path]
			graph := make([]int, len(f.Runs))
			for j, n := range f.Runs {
				graph[j] = int(n) //nolint:gosec // nobody runs so many tasks
			}
			v.Functions = append(v.Functions, FunctionStats{queues[i].Name, path, figuresOf(&f.Sum), graph})
		}
	}
	slices.SortStableFunc(v.Functions, func(a, b FunctionStats) int { return cmp.Compare(b.Runs, a.Runs) })
	for i := range times {
		if s := &times[i]; s.Runs+s.Archived > 0 {
			v.Times = append(v.Times, TimeStats{Stamp(from.Add(time.Duration(i) * per.step)), figuresOf(s)})
		}
	}
	return v, nil
}
