package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Queue is what a queue holds. All of it is of one moment but Active, Workers and Aggregating, which are read just
// after: a task that moves meanwhile may be counted twice, or not at all.
type Queue struct {
	Name   string
	Legacy bool      // legacy workers share it
	At     time.Time // when this was read, by Redis's clock

	// Pending includes Suspects: tasks that have died with a worker lately, which run with few others or alone.
	Pending, Suspects int
	Active            int // claimed by workers, those of legacy workers included
	Scheduled         int
	Retry             int
	Parked            int
	Archived          int
	Completed         int
	Aggregating       int // calls that wait in Groups
	Groups            int
	Workers           int // that are alive

	// Latency is the age of the oldest pending task, since it was enqueued; 0 if none is pending, or the message does
	// not have when it was enqueued, as those of legacy queues do not.
	Latency time.Duration
	Paused  time.Time // when Queue.Pause has paused it, by Redis's clock; zero: it is not paused
	Weight  int       // that Queue.SetWeight has given it; 0: as each worker is configured
	Today   Counts    // of the day in UTC

	// Err reports that another program uses a key of the queue, which has a wrong type. Only Queues returns such a
	// queue, of which no more than Name and Legacy is known.
	Err error
}

// Counts are what became of tasks in some time. One task may be counted in several.
type Counts struct {
	Processed int64 `json:"processed"` // runs that ended, well or not
	Failed    int64 `json:"failed"`    // of those, the ones that failed
	Retried   int64 `json:"retried"`
	Archived  int64 `json:"archived"` // also by hand; not those that were imported, or on the way to another queue
	Expired   int64 `json:"expired"`  // it was too late to start them
	Snoozed   int64 `json:"snoozed"`
	Canceled  int64 `json:"canceled"`
	Parked    int64 `json:"parked"`
	Lost      int64 `json:"lost"`    // claims that ended after the worker had lost them
	Swept     int64 `json:"swept"`   // claims taken from dead workers
	Trimmed   int64 `json:"trimmed"` // archived tasks deleted because of age or number
}

// fields returns all counts by the names that they have in Redis and in JSON.
func (c *Counts) fields() map[string]*int64 {
	return map[string]*int64{
		"processed": &c.Processed, "failed": &c.Failed, "retried": &c.Retried, "archived": &c.Archived,
		"expired": &c.Expired, "snoozed": &c.Snoozed, "canceled": &c.Canceled, "parked": &c.Parked, "lost": &c.Lost,
		"swept": &c.Swept, "trimmed": &c.Trimmed,
	}
}

// Add adds other counts to c.
func (c *Counts) Add(other *Counts) {
	sums := c.fields()
	for name, n := range other.ByName() {
		*sums[name] += n
	}
}

// ByName returns all counts by their names in JSON, such as "processed".
func (c *Counts) ByName() map[string]int64 {
	counts := map[string]int64{}
	for name, n := range c.fields() {
		counts[name] = *n
	}
	return counts
}

// countsOf reads the fields of a counter hash.
func countsOf(fields map[string]int64) (c Counts) {
	for name, n := range c.fields() {
		*n = fields[name]
	}
	return c
}

// Size returns how many tasks the queue holds in a state; 0 for states that Redis does not count apart.
func (q *Queue) Size(s state.Task) int {
	switch s {
	case state.Pending:
		return q.Pending
	case state.Active:
		return q.Active
	case state.Scheduled:
		return q.Scheduled
	case state.Retry:
		return q.Retry
	case state.Parked:
		return q.Parked
	case state.Archived:
		return q.Archived
	case state.Completed:
		return q.Completed
	case state.Aggregating:
		return q.Aggregating
	default:
		return 0
	}
}

// States are those that tasks are listed by.
var States = []state.Task{
	state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating, state.Archived,
	state.Completed,
}

// Names returns the names of the queues that Queues describes, sorted. It takes one call to Redis.
func (ins *Inspector) Names(ctx context.Context) ([]string, error) {
	stores, err := ins.stores(ctx, nil)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(stores))
	for i, s := range stores {
		names[i] = s.Name
	}
	return names, nil
}

// Queues describes all queues that producers and workers have used, sorted by name. One with a key of a wrong type has
// an Err.
func (ins *Inspector) Queues(ctx context.Context) ([]Queue, error) {
	stores, legacy, err := ins.knownStores(ctx)
	if err != nil {
		return nil, err
	}
	var queues []Queue
	for _, s := range stores {
		queues = append(queues, Queue{Name: s.Name, Legacy: legacy[s.Name]})
	}
	err = describe(ctx, queues, stores)
	if redisstore.IsWrongType(err) {
		err = describeEach(ctx, queues, stores)
	}
	if err != nil {
		return nil, err
	}
	return queues, nil
}

// Queue describes one queue. A queue that nobody has used is empty, and the error wraps ErrNotFound.
func (ins *Inspector) Queue(ctx context.Context, name string) (Queue, error) {
	s, err := ins.store(ctx, name)
	if err != nil {
		return Queue{}, err
	}
	names, err := ins.registry.Names(ctx)
	if err != nil {
		return Queue{}, err
	}
	legacy, known := names[name]
	one := []Queue{{Name: name, Legacy: legacy}}
	if err := describe(ctx, one, []*redisstore.Store{s}); err != nil {
		return Queue{}, err
	}
	if !known && one[0].empty() {
		err = fmt.Errorf("%w: queue %q: nobody has enqueued a task there, and no worker serves it", ErrNotFound, name)
	}
	return one[0], err
}

// empty reports whether Redis knows nothing of the queue.
func (q *Queue) empty() bool {
	held := q.Workers
	for _, s := range States {
		held += q.Size(s)
	}
	return held == 0 && q.Today == Counts{}
}

// describe fills in queues of the given stores.
func describe(ctx context.Context, queues []Queue, stores []*redisstore.Store) error {
	all, err := redisstore.Overviews(ctx, stores)
	if err != nil {
		return err
	}
	workers := make([][]string, len(all))
	for i := range all {
		workers[i] = all[i].Workers
	}
	rosters, err := redisstore.Rosters(ctx, stores, workers, false)
	if err != nil {
		return err
	}
	for i := range queues {
		o, q := &all[i], &queues[i]
		q.At = o.Now
		q.Pending, q.Suspects = o.Pending+o.Suspects, o.Suspects
		q.Scheduled, q.Retry, q.Parked = o.Scheduled, o.Retry, o.Parked
		q.Archived, q.Completed = o.Archived, o.Completed
		q.Groups, q.Aggregating, q.Active = o.Groups, o.Aggregating, o.LegacyClaims
		q.Paused, q.Weight, q.Today = o.Paused, o.Weight, countsOf(o.Today)
		q.Latency = max(age(o.Oldest, o.Now), age(o.OldestSuspect, o.Now))
		for _, w := range rosters[i] {
			q.Active += w.Claims
			if w.Heartbeat != "" {
				q.Workers++
			}
		}
	}
	return nil
}

// describeEach is describe one by one: it notes which queues have a key of a wrong type.
func describeEach(ctx context.Context, queues []Queue, stores []*redisstore.Store) error {
	for i := range queues {
		err := describe(ctx, queues[i:i+1], stores[i:i+1])
		if redisstore.IsWrongType(err) {
			queues[i], err = Queue{Name: queues[i].Name, Legacy: queues[i].Legacy, Err: err}, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// age returns how long ago the task of a message was enqueued, or due, if it had to wait first; 0 if that is unknown.
func age(m redisstore.Stored, now time.Time) time.Duration {
	msg, err := wire.Parse(m.Bytes, wire.WorkerLimits)
	if err != nil || msg.Meta.EnqueuedAt == 0 {
		return 0
	}
	since := msg.Meta.EnqueuedAt
	if x := msg.Meta.Extra; x != nil {
		since = max(since, x.Due)
	}
	return max(now.Sub(time.UnixMilli(since)), 0)
}

// Memory estimates how many bytes of memory Redis uses for a queue. Servers that do not know MEMORY USAGE answer with
// an error.
func (ins *Inspector) Memory(ctx context.Context, queue string) (int64, error) {
	s, err := ins.store(ctx, queue)
	if err != nil {
		return 0, err
	}
	return s.Memory(ctx)
}

// Day is what became of a queue's tasks in one day.
type Day struct {
	Date time.Time // midnight in UTC
	Counts
}

// History returns the counts of the last days, today first, at most 90.
func (ins *Inspector) History(ctx context.Context, queue string, days int) ([]Day, error) {
	s, err := ins.store(ctx, queue)
	if err != nil {
		return nil, err
	}
	now, err := s.Time(ctx)
	if err != nil {
		return nil, err
	}
	today := now.UTC().Truncate(24 * time.Hour)
	var all []Day
	for i := range min(max(days, 1), mostDays) {
		d := today.AddDate(0, 0, -i)
		fields, err := s.CountersOf(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, Day{Date: d, Counts: countsOf(fields)})
	}
	return all, nil
}

// mostDays is how long counters are kept.
const mostDays = 90
