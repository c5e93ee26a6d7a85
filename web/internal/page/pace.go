package page

import (
	"context"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/format"
	"github.com/godelayed/delayed/web/internal/site"
)

// paceSpan is the time that paces are about.
const paceSpan = time.Hour

const day = 24 * time.Hour

// pace is what a function has done in the last hour.
type pace struct{ inspect.Sample }

// paces returns the paces of a queue's functions by their paths. "" stands for those that found no room of their own.
// They are shared: callers do not change them.
func (s *shared) paces(q *site.Request, queue string) (map[string]*pace, error) {
	return site.Read(q.Ctx, s.Fast, "paces "+queue, func(ctx context.Context) (map[string]*pace, error) {
		from := time.Now().Add(-paceSpan)
		samples, err := q.Ins.Metrics(ctx, queue, inspect.Minutes, from, time.Time{})
		if err != nil {
			return nil, err
		}
		all := map[string]*pace{}
		// One bucket holds them all, whatever the difference between the clocks of this host and of Redis.
		for path, f := range inspect.SeriesOf(samples, from.Add(-day), 2*day, 1).Functions {
			all[path] = &pace{f.Sum}
		}
		return all, nil
	})
}

// Rate is how often the function has run in a minute, on average.
func (p *pace) Rate() string {
	if p == nil || p.Runs == 0 {
		return "0"
	}
	rate := float64(p.Runs) / paceSpan.Minutes()
	if rate < 0.1 {
		return "< 0.1"
	}
	if rate >= 1000 {
		return format.Number(uint64(rate))
	}
	return format.Significant(rate)
}

// WaitP50 and the others are times that a half, and 95 %, of the runs did not exceed.
func (p *pace) WaitP50() time.Duration { return p.Wait.Quantile(0.5) }

func (p *pace) WaitP95() time.Duration { return p.Wait.Quantile(0.95) }

func (p *pace) RunP50() time.Duration { return p.Run.Quantile(0.5) }

func (p *pace) RunP95() time.Duration { return p.Run.Quantile(0.95) }

// Often reports whether so many runs fail that somebody should look.
func (p *pace) Often() bool { return often(p.Failed, p.Runs) }

// often reports whether a tenth of all runs has failed, or more.
func often(failed, runs uint64) bool { return failed > 0 && failed*10 >= runs }
