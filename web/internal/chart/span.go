package chart

import (
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/format"
)

// Span is how far back charts look, and how finely.
type Span struct {
	Name  string // in the address
	Label string // in a sentence: "in the last hour"
	Note  string // of one bucket
	grain inspect.Grain
	block time.Duration // that one read of Redis has
	step  time.Duration // of a bucket
	n     int           // buckets
	calls bool          // queues are distinguished
	lives int           // for how many lives of a history it is kept: longer, the coarser it is
}

var (
	hourSpan    = Span{"hour", "hour", "per 30 s", inspect.Seconds, time.Minute, 30 * time.Second, 120, true, 1}
	daySpan     = Span{"day", "24 hours", "per 15 min", inspect.Minutes, time.Hour, 15 * time.Minute, 96, false, 6}
	quarterSpan = Span{"quarter", "90 days", "per day", inspect.Days, format.Day, format.Day, 90, false, 30}
	// coarseHour is for many queues: it takes two reads of each in place of sixty.
	coarseHour = Span{"hour", "hour", "per minute", inspect.Minutes, time.Hour, time.Minute, 60, true, 3}
)

// ManyQueues is how many queues are so many that they are read coarsely.
const ManyQueues = 50

// SpanOf returns the span of a name, the hour for any other, for a number of queues.
func SpanOf(name string, queues int) *Span {
	switch {
	case name == daySpan.Name:
		return &daySpan
	case name == quarterSpan.Name:
		return &quarterSpan
	case queues > ManyQueues:
		return &coarseHour
	}
	return &hourSpan
}

// begin returns when the first bucket begins, if the last one has now in it.
func (s *Span) begin(now time.Time) time.Time {
	return now.UTC().Truncate(s.step).Add(-time.Duration(s.n-1) * s.step)
}

// SpanLink is a choice of a span.
type SpanLink struct {
	*Span
	Here bool
}

// SpanLinks returns all spans, with one marked.
func SpanLinks(here *Span) (links []SpanLink) {
	for _, s := range []*Span{&hourSpan, &daySpan, &quarterSpan} {
		links = append(links, SpanLink{s, s.Name == here.Name})
	}
	return links
}

// Charts returns the pictures of what has run.
func (f *Flow) Charts() []*Chart {
	runs := f.chart("runs", "Runs", false, "Nothing has run in this time.")
	runs.Value = writeCount
	sum := f.Sum()
	runs.All = format.Number(sum.Runs) + " runs, of which " + format.Number(sum.Failed) + " failed"
	runs.Series = []Series{
		{"succeeded", "s3", f.values(func(s *inspect.Sample) float64 { return float64(s.Runs) - float64(s.Failed) })},
		{"failed", "s2", f.values(func(s *inspect.Sample) float64 { return float64(s.Failed) })},
	}
	waits := func(s *inspect.Sample) *inspect.Histogram { return &s.Wait }
	wait := f.chart("wait", "Wait for a worker", true, "No task has waited for a worker in this time.")
	wait.All, wait.Series = summary(&sum.Wait), f.quantiles(waits)
	takes := func(s *inspect.Sample) *inspect.Histogram { return &s.Run }
	run := f.chart("took", "Run time", true, "No handler has returned in this time.")
	run.All, run.Series = summary(&sum.Run), f.quantiles(takes)
	return []*Chart{runs, wait, run}
}

// chart returns a chart of the buckets, as yet without series; lines are of durations.
func (f *Flow) chart(id, title string, lines bool, empty string) *Chart {
	c := &Chart{ID: id, Title: title, Note: f.Span.Note, Lines: lines, Known: f.known, Empty: empty}
	c.timeAxis(f.from, f.Span.step, f.Span.n)
	if lines {
		c.Value, c.Steps = writeSeconds, durationStep
	}
	return c
}

// values returns a value of each bucket; gaps where nothing is known.
func (f *Flow) values(of func(*inspect.Sample) float64) []float64 {
	values := make([]float64, len(f.buckets))
	for i := range f.buckets {
		if values[i] = gap; f.known == nil || f.known[i] {
			values[i] = of(&f.buckets[i])
		}
	}
	return values
}

// quantiles returns how long most and half of something took at most, in seconds; gaps where nothing has run.
func (f *Flow) quantiles(of func(*inspect.Sample) *inspect.Histogram) []Series {
	quantile := func(q float64) []float64 {
		return f.values(func(s *inspect.Sample) float64 {
			h := of(s)
			if h.Count() == 0 {
				return gap
			}
			return max(h.Quantile(q), time.Microsecond).Seconds()
		})
	}
	return []Series{{"p95", "s4", quantile(.95)}, {"p50", "s1", quantile(.5)}}
}
