package top

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// span is how far back rates and sparklines go.
type span int

const (
	minutes span = iota // two minutes, by the second
	hour                // an hour, by the minute
	spans
)

// bars is how many bars a sparkline has.
const bars = 20

// spanOf has what differs between the spans.
var spanOf = [spans]struct {
	name  string
	grain inspect.Grain
	step  time.Duration // of one bar
	// lag is how long workers keep what they have counted, so that the last bar is not always too low.
	lag time.Duration
	// stale is how old samples may be before they are read again, and again from where workers may have added to.
	stale, again time.Duration
}{
	minutes: {"2m", inspect.Seconds, 6 * time.Second, 6 * time.Second, 4 * time.Second, 30 * time.Second},
	hour:    {"1h", inspect.Minutes, 3 * time.Minute, 0, 15 * time.Second, 2 * time.Minute},
}

// length is how far back a span goes.
func (s span) length() time.Duration { return bars * spanOf[s].step }

// flow is what has run in a span.
type flow struct {
	runs, failed           [bars]uint64 // for each bar of a sparkline, the latest at last
	total, failures        uint64
	archived               uint64
	wait50, wait95         time.Duration
	run50, run95, run99    time.Duration
	perSecond, failPercent float64
}

// functionFlow is the flow of one function.
type functionFlow struct {
	flow

	queue, path string
}

// queueFlow is the flow of a queue and of its functions.
type queueFlow struct {
	flow

	functions []functionFlow
}

// mostReads is how many queues are read anew in one refresh. All others show what was read before: with many queues it
// takes some refreshes until each is up to date.
const mostReads = 8

// meter reads the metrics of queues and keeps what it has read, because each worker writes them only every few seconds.
type meter struct {
	ins *inspect.Inspector

	mu    sync.Mutex // protects all below; one refresh may still end while the next one begins
	known map[meterKey]*metered
	skew  time.Duration // how far Redis's clock is ahead of ours
	timed bool          // skew is known
}

type meterKey struct {
	queue string
	span  span
}

// metered are the samples of a queue.
type metered struct {
	samples []inspect.Sample
	read    time.Time // when, by our clock
	asked   time.Time // when somebody last wanted to see them
}

func newMeter(ins *inspect.Inspector) *meter {
	return &meter{ins: ins, known: map[meterKey]*metered{}}
}

// flows returns those of queues. It reads the oldest ones anew, mostReads at most.
func (m *meter) flows(ctx context.Context, s span, queues []string) (map[string]queueFlow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(queues) == 0 {
		return nil, nil
	}
	now := time.Now()
	if !m.timed {
		q, err := m.ins.Queue(ctx, queues[0])
		if q.At.IsZero() {
			return nil, err
		}
		m.skew, m.timed = q.At.Sub(now), true
	}
	var old []string
	for _, name := range queues {
		k := m.known[meterKey{name, s}]
		if k == nil {
			k = &metered{}
			m.known[meterKey{name, s}] = k
		}
		if k.asked = now; now.Sub(k.read) >= spanOf[s].stale {
			old = append(old, name)
		}
	}
	slices.SortStableFunc(old, func(a, b string) int {
		return m.known[meterKey{a, s}].read.Compare(m.known[meterKey{b, s}].read)
	})
	for _, name := range old[:min(len(old), mostReads)] {
		if err := m.known[meterKey{name, s}].update(ctx, m.ins, name, s, now, m.skew); err != nil {
			return nil, err
		}
	}
	m.forget(now)
	flows := make(map[string]queueFlow, len(queues))
	for _, name := range queues {
		if k := m.known[meterKey{name, s}]; !k.read.IsZero() {
			flows[name] = flowsOf(name, k.samples, s, now.Add(m.skew))
		}
	}
	return flows, nil
}

// forget drops what nobody has looked at for long.
func (m *meter) forget(now time.Time) {
	for key, k := range m.known {
		if now.Sub(k.asked) > hour.length() {
			delete(m.known, key)
		}
	}
}

// update reads samples of the time that may have changed since they were read last.
func (k *metered) update(
	ctx context.Context, ins *inspect.Inspector, queue string, s span, now time.Time, skew time.Duration,
) error {
	from := now.Add(skew - s.length() - spanOf[s].lag)
	if again := k.read.Add(skew - spanOf[s].again); !k.read.IsZero() && again.After(from) {
		from = again
	}
	fresh, err := ins.Metrics(ctx, queue, spanOf[s].grain, from, time.Time{})
	if err != nil {
		return err
	}
	from = from.Truncate(time.Second)
	if s == hour {
		from = from.Truncate(time.Minute)
	}
	oldest := now.Add(skew - s.length() - spanOf[s].lag - spanOf[s].step)
	k.samples = slices.DeleteFunc(k.samples, func(old inspect.Sample) bool {
		return !old.At.Before(from) || old.At.Before(oldest)
	})
	k.samples, k.read = append(k.samples, fresh...), now
	return nil
}

// flowsOf adds up samples. now is the present time by Redis's clock.
func flowsOf(queue string, samples []inspect.Sample, s span, now time.Time) queueFlow {
	// Bars begin at whole multiples of their length, so that they do not change their height while they move.
	end := now.Add(-spanOf[s].lag).Truncate(spanOf[s].step).Add(spanOf[s].step)
	begin := end.Add(-s.length())
	series := inspect.SeriesOf(samples, begin, spanOf[s].step, bars)
	seconds := min(s.length(), now.Add(-spanOf[s].lag).Sub(begin)).Seconds()
	var all queueFlow
	for i := range series.Buckets {
		all.runs[i], all.failed[i] = series.Buckets[i].Runs, series.Buckets[i].Failed
	}
	sum := series.Sum()
	all.fill(&sum, seconds)
	for path, ran := range series.Functions {
		f := functionFlow{queue: queue, path: path}
		copy(f.runs[:], ran.Runs)
		copy(f.failed[:], ran.Failed)
		f.fill(&ran.Sum, seconds)
		all.functions = append(all.functions, f)
	}
	slices.SortFunc(all.functions, func(a, b functionFlow) int { return strings.Compare(a.path, b.path) })
	return all
}

// fill computes what follows from the sum of all samples of a span.
func (f *flow) fill(sum *inspect.Sample, seconds float64) {
	f.total, f.failures, f.archived = sum.Runs, sum.Failed, sum.Archived
	f.wait50, f.wait95 = sum.Wait.Quantile(0.5), sum.Wait.Quantile(0.95)
	f.run50, f.run95, f.run99 = sum.Run.Quantile(0.5), sum.Run.Quantile(0.95), sum.Run.Quantile(0.99)
	if seconds > 0 {
		f.perSecond = float64(f.total) / seconds
	}
	if f.total > 0 {
		f.failPercent = 100 * float64(f.failures) / float64(f.total)
	}
}
