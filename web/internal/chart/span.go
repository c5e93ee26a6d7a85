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
