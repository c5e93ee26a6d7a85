package chart

import (
	"math"
	"strconv"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/format"
)

// wantedLines is how many lines help to read a chart, at most.
const wantedLines = 4

// wantedTicks is likewise for marks of times.
const wantedTicks = 7

// countStep returns the distance of lines for counts up to a number: 1, 2 or 5 times a power of ten.
func countStep(most float64) float64 {
	if most <= 1 {
		return 1
	}
	size := math.Pow(10, math.Floor(math.Log10(most/wantedLines)))
	for _, n := range []float64{1, 2, 5, 10} {
		if step := max(n*size, 1); most <= step*wantedLines {
			return step
		}
	}
	return 10 * size
}

// timeSteps are distances between durations that people count in.
var timeSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	format.Day, 2 * format.Day, 7 * format.Day, 14 * format.Day, 30 * format.Day,
}

// durationStep is countStep of seconds.
func durationStep(most float64) float64 {
	if most < 1 {
		if most*1e6 <= 1 {
			return 1e-6
		}
		return countStep(most*1e6) / 1e6
	}
	for _, step := range timeSteps {
		if most <= step.Seconds()*wantedLines {
			return step.Seconds()
		}
	}
	return countStep(most/format.Day.Seconds()) * format.Day.Seconds()
}

// writeCount writes a count.
func writeCount(f float64) string { return format.Number(int64(math.Round(f))) }

// shortCount writes a count of few digits for an axis: 20 k, 1.5 M.
func shortCount(f float64) string {
	switch {
	case f >= 1e9:
		return strconv.FormatFloat(f/1e9, 'f', -1, 64) + " G"
	case f >= 1e6:
		return strconv.FormatFloat(f/1e6, 'f', -1, 64) + " M"
	case f >= 1e4:
		return strconv.FormatFloat(f/1e3, 'f', -1, 64) + " k"
	}
	return writeCount(f)
}

// writeSeconds writes a duration in seconds.
func writeSeconds(f float64) string { return format.Duration(time.Duration(math.Round(f * 1e9))) }

// timeAxis sets the names and ticks of buckets that begin at a time. The last may have begun just now.
func (c *Chart) timeAxis(from time.Time, step time.Duration, n int) {
	name, mark := "15:04:05", "15:04"
	whole := step * time.Duration(n)
	switch {
	case step >= format.Day:
		name, mark = "Mon 2 Jan", "2 Jan"
	case step >= time.Minute && whole <= time.Hour:
		name = "15:04"
	case step >= time.Minute:
		name = "Mon 15:04"
	}
	c.Column = "Time (UTC)"
	c.Names = make([]string, n)
	for i := range n {
		c.Names[i] = from.Add(time.Duration(i) * step).UTC().Format(name)
	}
	distance := timeSteps[len(timeSteps)-1]
	for _, d := range timeSteps {
		if whole <= d*wantedTicks {
			distance = d
			break
		}
	}
	for at := from.UTC().Truncate(distance); at.Before(from.Add(whole)); at = at.Add(distance) {
		if at.Before(from) {
			continue
		}
		c.Ticks = append(c.Ticks, Tick{float64(at.Sub(from)) / float64(step), at.Format(mark)})
	}
}

// spreadLimits are the bounds of the columns of a spread: about three for each power of ten.
func spreadLimits() (limits []time.Duration) {
	for d := time.Microsecond; d < time.Second; d *= 10 {
		limits = append(limits, d, 2*d, 5*d)
	}
	return append(limits, timeSteps...)
}

// Spread is a chart of how durations are distributed.
func Spread(id, title string, h *inspect.Histogram) *Chart {
	c := &Chart{
		ID: id, Title: title, Value: writeCount, Column: "Duration", Empty: "Nothing has run in this time.",
		All: summary(h),
	}
	limits := spreadLimits()
	below := h.Below(limits...)
	counts := make([]uint64, len(limits)+1) // counts[i] are below limits[i] and not below the limit before
	first, last := -1, -1
	for i := range counts {
		before, upTo := uint64(0), h.Count()
		if i > 0 {
			before = below[i-1]
		}
		if i < len(below) {
			upTo = below[i]
		}
		if counts[i] = upTo - before; counts[i] > 0 {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return c
	}
	for last-first < 11 { // a few durations do not fill the whole picture
		last, first = min(last+1, len(limits)), max(first-1, 0)
	}
	values := make([]float64, 0, last-first+1)
	every := (last-first)/6 + 1
	for i := first; i <= last; i++ {
		values = append(values, float64(counts[i]))
		switch {
		case i == 0:
			c.Names = append(c.Names, "below "+format.Duration(limits[0]))
		case i == len(limits):
			c.Names = append(c.Names, "from "+format.Duration(limits[i-1]))
		default:
			c.Names = append(c.Names, format.Duration(limits[i-1])+" to "+format.Duration(limits[i]))
		}
		if at := i - first; i > 0 && at%every == 0 {
			c.Ticks = append(c.Ticks, Tick{float64(at), format.Duration(limits[i-1])})
		}
	}
	c.Series = []Series{{Name: "tasks", Class: "s1", Values: values}}
	return c
}

// summary describes in words how durations are distributed.
func summary(h *inspect.Histogram) string {
	if h.Count() == 0 {
		return "none"
	}
	return "p50 " + format.Duration(h.Quantile(.5)) + ", p95 " + format.Duration(h.Quantile(.95)) + ", p99 " +
		format.Duration(h.Quantile(.99))
}
