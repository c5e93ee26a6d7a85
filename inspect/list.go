package inspect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Query selects which tasks of a queue a list has, and in which order.
type Query struct {
	State  state.Task // one of States; required
	Filter Filter     // the zero Filter matches all tasks
	// NewestFirst begins with the task that came last: in the sets of scheduled, retrying, parked, archived and
	// completed tasks that which has the latest Task.Due. Otherwise the one that is next, or oldest, comes first.
	NewestFirst bool
	Cursor      string // of the page before; "" for the first page
	// Limit is the largest number of tasks in a page, up to 1,000. Defaults to 100.
	Limit int
	// ScanLimit is the largest number of tasks that are looked at for one page. A page may have none at all, and a
	// cursor. Defaults to 10,000.
	ScanLimit int
}

// Page is a part of a list.
type Page struct {
	Tasks   []Task
	Cursor  string // for the next page; "" after the last
	Scanned int    // tasks that were looked at
	Total   int    // tasks in that state when the page was read, whether the filter matches them or not
}

// The bounds of a page.
const (
	defaultLimit = 100
	mostLimit    = 1000
	defaultScan  = 10_000
	readAtOnce   = 200 // tasks read in one call
)

// Tasks returns a page of a queue's tasks.
func (ins *Inspector) Tasks(ctx context.Context, queue string, q Query) (Page, error) {
	s, err := ins.store(ctx, queue)
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return Page{}, err
	}
	limit, scan := q.Limit, q.ScanLimit
	if limit == 0 {
		limit = defaultLimit
	}
	if scan == 0 {
		scan = defaultScan
	}
	held := []Queue{{}}
	if err := describe(ctx, held, []*redisstore.Store{s}); err != nil {
		return Page{}, err
	}
	at, err := q.place()
	if err != nil {
		return Page{}, err
	}
	page := Page{Total: held[0].Size(q.State)}
	r, err := ins.reader(ctx, s, &q, at, held[0].At)
	if err != nil {
		return Page{}, err
	}
	n := limit
	if !q.Filter.IsZero() {
		n = readAtOnce
	}
	for {
		tasks, more, err := r.read(ctx, min(n, scan-page.Scanned))
		if err != nil {
			return Page{}, err
		}
		for i := range tasks {
			page.Scanned++
			if q.Filter.Match(&tasks[i].Task, held[0].At) {
				page.Tasks = append(page.Tasks, tasks[i].Task)
			}
			if len(page.Tasks) == limit || page.Scanned == scan {
				page.Cursor = tasks[i].behind.cursor(&q)
				return page, nil
			}
		}
		if !more {
			return page, nil
		}
	}
}

// check returns an error if there is no such list.
func (q *Query) check() error {
	switch {
	case q.State == state.Dropped || q.State == state.Canceled:
		return fmt.Errorf("inspect: Query.State is %v: expected one of States; dropped and canceled tasks are listed "+
			"as completed", q.State)
	case !slices.Contains(States, q.State):
		return fmt.Errorf("inspect: Query.State is %v: expected one of States", q.State)
	case q.Limit < 0 || q.Limit > mostLimit:
		return fmt.Errorf("inspect: Query.Limit is %d: expected 1 to %d, or 0 for %d", q.Limit, mostLimit, defaultLimit)
	case q.ScanLimit < 0:
		return fmt.Errorf("inspect: Query.ScanLimit is %d: expected a positive number, or 0 for %d", q.ScanLimit,
			defaultScan)
	}
	return nil
}

// All returns all tasks of a list, page by page. Query.Limit bounds a page. After an error the list ends.
func (ins *Inspector) All(ctx context.Context, queue string, q Query) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		for {
			page, err := ins.Tasks(ctx, queue, q)
			if err != nil {
				yield(Task{}, err)
				return
			}
			for _, t := range page.Tasks {
				if !yield(t, nil) {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			q.Cursor = page.Cursor
		}
	}
}

// listed is a task in a list.
type listed struct {
	Task
	behind place // in the list
}

// reader reads a list, in steps.
type reader interface {
	// read returns the next tasks, at most n, and whether there may be more.
	read(ctx context.Context, n int) (tasks []listed, more bool, err error)
}

// part is what the readers of all states have.
type part struct {
	ins   *Inspector
	store *redisstore.Store
	at    place
	back  bool // read from the new end, or the latest first
}

// task describes a task of the list.
func (p *part) task(s state.Task, m redisstore.Stored, info []byte) Task {
	return p.ins.newTask(p.store.Name, s, m, info)
}

// reader returns the reader of a list from a place on. now is the present time by Redis's clock.
func (ins *Inspector) reader(
	ctx context.Context, s *redisstore.Store, q *Query, at place, now time.Time,
) (reader, error) {
	p := part{ins, s, at, q.NewestFirst}
	switch q.State {
	case state.Pending:
		canceled, err := newCanceledFilter(ctx, s)
		r := &pendingReader{part: p, canceledFilter: canceled, id: q.Filter.ID}
		if r.lists = [2]*redisstore.Store{s.Suspects(), s}; r.back {
			r.lists = [2]*redisstore.Store{s, s.Suspects()}
		}
		return r, err
	case state.Active:
		r := &activeReader{part: p}
		return r, r.listWorkers(ctx)
	case state.Aggregating:
		canceled, err := newCanceledFilter(ctx, s)
		return &groupReader{part: p, canceledFilter: canceled}, err
	default:
		return &setReader{part: p, state: q.State, now: now}, nil
	}
}

// place is a place in a list, behind one of its tasks. The zero value is the beginning.
type place struct {
	Part   int                 `json:"p,omitempty"` // of a list that has several
	N      int                 `json:"n,omitempty"` // how many members of that part are older than the place
	Last   []uint64            `json:"l,omitempty"` // digests of the last messages before it
	In     redisstore.SetPlace `json:"s,omitzero"`  // in a sorted set, of tasks or groups
	Worker string              `json:"w,omitempty"`
	Token  string              `json:"t,omitempty"`
}

// cursor is a place and the list that it is in, as JSON.
type cursor struct {
	place
	State state.Task `json:"q"`
	Back  bool       `json:"b,omitempty"`
}

// cursor returns the cursor for a place.
func (at *place) cursor(q *Query) string {
	b, err := json.Marshal(cursor{*at, q.State, q.NewestFirst})
	if err != nil {
		panic(err) // it has no type that JSON lacks
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ErrCursor reports that a Query.Cursor is not one of the list that the query is about.
var ErrCursor = errors.New("inspect: not a cursor of this list")

// place returns the place of a query's cursor.
func (q *Query) place() (place, error) {
	var c cursor
	if q.Cursor == "" {
		return c.place, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.State != q.State || c.Back != q.NewestFirst || c.N < 0 || c.Part < 0 {
		return place{}, fmt.Errorf("%w: Query.Cursor %.100q: expected that of a Page of %v tasks, read in the same "+
			"order", ErrCursor, q.Cursor, q.State)
	}
	return c.place, nil
}
