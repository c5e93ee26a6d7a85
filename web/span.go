package web

import (
	"time"

	"github.com/godelayed/delayed/inspect"
)

// span is how far back charts look, and how finely.
type span struct {
	Name  string // in the address
	Label string // in a sentence: "in the last hour"
	Note  string // of one bucket
	grain inspect.Grain
	block time.Duration // that one read of Redis has
	step  time.Duration // of a bucket
	n     int           // buckets
	calls bool          // functions are told apart
	lives int           // for how many lives of a past it is kept: longer, the coarser it is
}

var (
	hourSpan    = span{"hour", "hour", "per 30 s", inspect.Seconds, time.Minute, 30 * time.Second, 120, true, 1}
	daySpan     = span{"day", "24 hours", "per 15 min", inspect.Minutes, time.Hour, 15 * time.Minute, 96, false, 6}
	quarterSpan = span{"quarter", "90 days", "per day", inspect.Days, day, day, 90, false, 30}
	// coarseHour is for many queues: it takes two reads of each in place of sixty.
	coarseHour = span{"hour", "hour", "per minute", inspect.Minutes, time.Hour, time.Minute, 60, true, 3}
)

// manyQueues is how many queues are so many that they are read coarsely.
const manyQueues = 50

// spanOf returns the span of a name, the hour for any other, for a number of queues.
func spanOf(name string, queues int) *span {
	switch {
	case name == daySpan.Name:
		return &daySpan
	case name == quarterSpan.Name:
		return &quarterSpan
	case queues > manyQueues:
		return &coarseHour
	}
	return &hourSpan
}

// begin returns when the first bucket begins, if the last one has now in it.
func (s *span) begin(now time.Time) time.Time {
	return now.UTC().Truncate(s.step).Add(-time.Duration(s.n-1) * s.step)
}

// spanLink is a choice of a span.
type spanLink struct {
	*span
	Here bool
}

// spanLinks returns all spans, with one marked.
func spanLinks(here *span) (links []spanLink) {
	for _, s := range []*span{&hourSpan, &daySpan, &quarterSpan} {
		links = append(links, spanLink{s, s.Name == here.Name})
	}
	return links
}
