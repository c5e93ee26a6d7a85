package delayedprom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godelayed/delayed/inspect"
)

// Config defines what a Collector shows. Its zero value is ready to use.
type Config struct {
	// Namespace is what the names of all metrics begin with: letters, digits and underscores. Defaults to "delayed".
	// The rules of alerts.yml and the dashboard expect the default.
	Namespace string
	// Timeout bounds how long a scrape takes. What has not been read by then is missing. Defaults to 5 s; choose less
	// than Prometheus's scrape_timeout, which is 10 s by default.
	Timeout time.Duration
	// Queues are the queues to show. Defaults to all that producers and workers have used.
	Queues []string
	// MaxQueues bounds how many queues are shown: the first ones by name. Defaults to 100. It does not bound Queues.
	MaxQueues int
	// Memory is whether to ask Redis how much memory each queue uses, which takes 15 calls a queue.
	Memory bool
	// OnError receives each error of a scrape, for a log. It may be called by several goroutines at a time.
	OnError func(error)
}

// sideBySide is how many queues a scrape reads at a time.
const sideBySide = 4

// Collector is a prometheus.Collector of what an Inspector sees. It is safe for concurrent use and keeps no goroutine.
type Collector struct {
	ins    *inspect.Inspector
	cfg    Config
	d      *descs
	fault  error // why cfg is no good
	errors atomic.Uint64
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a Collector. It does not connect. Registering it returns an error if ins is nil or cfg is wrong. Wrap the
// registerer with prometheus.WrapRegistererWith to give the metrics of several Redis servers or prefixes a label each.
func New(ins *inspect.Inspector, cfg Config) *Collector {
	if cfg.Namespace == "" {
		cfg.Namespace = "delayed"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.MaxQueues == 0 {
		cfg.MaxQueues = 100
	}
	cfg.Queues = slices.Clone(cfg.Queues)
	slices.Sort(cfg.Queues)
	cfg.Queues = slices.Compact(cfg.Queues)
	c := &Collector{ins: ins, cfg: cfg, fault: cfg.check(), d: newDescs(cfg.Namespace)}
	if ins == nil {
		c.fault = errors.Join(errors.New("delayedprom: the *Inspector is nil: make it with inspect.New"), c.fault)
	}
	return c
}

func (cfg *Config) check() error {
	var errs []error
	for i, r := range cfg.Namespace {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			errs = append(errs, fmt.Errorf(
				"delayedprom: Config.Namespace is %q: expected letters, digits and underscores", cfg.Namespace,
			))
			break
		}
	}
	if cfg.Timeout < 0 {
		errs = append(errs, fmt.Errorf("delayedprom: Config.Timeout is %v: expected more than 0", cfg.Timeout))
	}
	if cfg.MaxQueues < 0 {
		errs = append(errs, fmt.Errorf("delayedprom: Config.MaxQueues is %d: expected more than 0", cfg.MaxQueues))
	}
	for _, name := range cfg.Queues {
		if name == "" || !utf8.ValidString(name) {
			errs = append(errs, fmt.Errorf("delayedprom: Config.Queues has %q: expected names of queues", name))
		}
	}
	return errors.Join(errs...)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	if c.fault != nil {
		ch <- prometheus.NewInvalidDesc(c.fault)
		return
	}
	for _, d := range c.d.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It returns within Config.Timeout.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c.fault != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(c.fault), c.fault)
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer cancel()
	s := &scrape{Collector: c, ch: ch}
	s.queues(ctx)
	s.servers(ctx)
	s.gauge(c.d.success, flag(!s.failed.Load()))
	s.count(c.d.errors, c.errors.Load())
	s.gauge(c.d.duration, time.Since(began).Seconds())
}

// scrape is one call of Collect.
type scrape struct {
	*Collector

	ch     chan<- prometheus.Metric
	failed atomic.Bool
	late   atomic.Bool
}

// try reads something and reports whether that went well. It notes the error. When the time of the scrape is over it
// reads nothing more, and notes that once.
func (s *scrape) try(ctx context.Context, what string, read func() error) (ok bool) {
	// The deadlines of connections end up to a moment before ctx does.
	if deadline, _ := ctx.Deadline(); !time.Now().Before(deadline) {
		if s.late.Swap(true) {
			return false
		}
		what, read = "the scrape is not complete", func() error { return context.DeadlineExceeded }
	}
	err := read()
	if err == nil {
		return true
	}
	s.failed.Store(true)
	s.errors.Add(1)
	if s.cfg.OnError != nil {
		s.cfg.OnError(fmt.Errorf("delayedprom: %s: %w", what, err))
	}
	return false
}

// queues shows all queues, several at a time.
func (s *scrape) queues(ctx context.Context) {
	names := s.names(ctx)
	known := s.overview(ctx, names)
	next := make(chan string)
	var readers sync.WaitGroup
	for range min(sideBySide, len(names)) {
		readers.Go(func() {
			for name := range next {
				s.gauge(s.d.queueSuccess, flag(s.queue(ctx, name, known)), name)
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	readers.Wait()
}

// names returns the names of the queues to show.
func (s *scrape) names(ctx context.Context) []string {
	names := s.cfg.Queues
	if len(names) > 0 {
		s.gauge(s.d.queues, float64(len(names)))
		s.gauge(s.d.omitted, 0)
		return names
	}
	ok := s.try(ctx, "names of queues", func() (err error) {
		names, err = s.ins.Names(ctx)
		return err
	})
	if !ok {
		return nil
	}
	shown := min(len(names), s.cfg.MaxQueues)
	s.gauge(s.d.queues, float64(len(names)))
	s.gauge(s.d.omitted, float64(len(names)-shown))
	return names[:shown]
}

// overview describes all queues in few calls. It returns nothing if that fails, or would read far more queues than are
// shown: then each is described alone.
func (s *scrape) overview(ctx context.Context, names []string) map[string]inspect.Queue {
	if len(s.cfg.Queues) > 0 || len(names) == s.cfg.MaxQueues {
		return nil
	}
	queues, err := s.ins.Queues(ctx)
	if err != nil {
		return nil // describing them one by one shows which it is
	}
	known := make(map[string]inspect.Queue, len(queues))
	for _, q := range queues {
		if q.Err == nil { // else describing it alone shows what is wrong
			known[q.Name] = q
		}
	}
	return known
}

func (s *scrape) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s *scrape) count(d *prometheus.Desc, value uint64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
