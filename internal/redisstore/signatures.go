package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/catalog"
)

const (
	// signaturesLife is how long a producer relies on what it has read of workers, and partLife how long while there
	// are none, or some have published nothing yet.
	signaturesLife, partLife = 10 * time.Second, time.Second
	// rereadEvery is the shortest time between two reads of the functions of all workers, those that are known already
	// included.
	rereadEvery = time.Second
)

// Signatures are what the workers of a queue publish of their functions, as they were read lately. All queues of a
// handle that have the same name share them.
type Signatures struct {
	store *Store
	known atomic.Pointer[knownSignatures]
	// reading is taken by who reads, and guards the fields below.
	reading chan struct{}
	workers map[string]*catalog.Listing // nil: a worker that has published nothing yet
	whole   time.Time                   // when the functions of all workers were last read
}

// knownSignatures are the signatures of a moment.
type knownSignatures struct {
	published catalog.Published
	at        time.Time
}

// old reports whether they must be read anew. k may be nil.
func (k *knownSignatures) old() bool {
	if k == nil {
		return true
	}
	life := signaturesLife
	if len(k.published) == 0 || slices.Contains(k.published, nil) {
		life = partLife
	}
	return time.Since(k.at) >= life
}

// NewSignatures returns the signatures of a queue. It reads nothing yet.
func NewSignatures(s *Store) *Signatures {
	return &Signatures{store: s, reading: make(chan struct{}, 1)}
}

// Check returns the error of fits about what workers have published. It reads nothing if that was read in the last ten
// seconds and fits returns nil; before it returns an error of fits, it looks for workers that have started since.
func (s *Signatures) Check(ctx context.Context, fits func(catalog.Published) error) error {
	p, err := s.fresh(ctx)
	if err != nil || fits(p) == nil {
		return err
	}
	began := time.Now()
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	if k := s.known.Load(); k.at.Before(began) { // nobody has read meanwhile
		if err := s.read(ctx, began.Sub(s.whole) >= rereadEvery); err != nil {
			return err
		}
	}
	return fits(s.known.Load().published)
}

// fresh returns what workers published at most ten seconds ago. While somebody else reads it anew, it may be older.
func (s *Signatures) fresh(ctx context.Context) (catalog.Published, error) {
	k := s.known.Load()
	if !k.old() {
		return k.published, nil
	}
	if k != nil {
		select {
		case s.reading <- struct{}{}:
		default:
			return k.published, nil
		}
	} else if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if s.known.Load().old() {
		if err := s.read(ctx, false); err != nil {
			return nil, err
		}
	}
	return s.known.Load().published, nil
}

// take waits until nobody reads.
func (s *Signatures) take(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unread(context.Cause(ctx))
	}
}

func (s *Signatures) release() { <-s.reading }

// read reads the functions of workers: of those that are new, or of all.
func (s *Signatures) read(ctx context.Context, whole bool) error {
	at := time.Now()
	ids, err := s.store.Workers(ctx)
	if err != nil {
		return unread(err)
	}
	slices.Sort(ids)
	wanted := ids
	if !whole {
		wanted = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return s.workers[id] != nil })
	}
	texts, err := s.store.Listings(ctx, wanted, catalog.MostBytes)
	if err != nil {
		return unread(err)
	}
	found := make(map[string]*catalog.Listing, len(ids))
	for _, id := range ids {
		found[id] = s.workers[id]
	}
	same := map[string]*catalog.Listing{} // workers of one program publish the same
	for i, id := range wanted {
		text := string(texts[i])
		if same[text] == nil {
			same[text] = catalog.ParseListing(texts[i])
		}
		found[id] = same[text]
	}
	k := &knownSignatures{at: at}
	for _, id := range ids {
		if l := found[id]; !slices.Contains(k.published, l) {
			k.published = append(k.published, l)
		}
	}
	s.workers = found
	if whole || len(wanted) == len(ids) {
		s.whole = at
	}
	s.known.Store(k)
	return nil
}

// unread returns the error of a call that was not compared with what workers publish.
func unread(err error) error {
	return fmt.Errorf("delayed: QueueConfig.Check: reading the functions of workers; nothing was enqueued: %w", err)
}

// PublishEach is Store.Publish for stores of one slot, with a text for each.
func PublishEach(ctx context.Context, stores []*Store, worker string, texts [][]byte) []Answer[bool] {
	return evalEach(ctx, "publish", stores, redis.Bool, func(i int) ([]string, []any) {
		return stores[i].publication(worker, texts[i])
	})
}

// Publish writes the listing of the functions that a worker runs, or with StatusMark behind the worker's id what it
// does. It reports false if the worker is not registered.
func (s *Store) Publish(ctx context.Context, worker string, text []byte) (bool, error) {
	keys, args := s.publication(worker, text)
	return redis.Bool(s.eval(ctx, "publish", keys, args...))
}

func (s *Store) publication(worker string, text []byte) (keys []string, args []any) {
	id, _ := strings.CutSuffix(worker, StatusMark)
	return []string{s.keys.heartbeat + id, s.keys.functions}, []any{worker, text}
}

// FunctionsOf returns the listing that a worker has published, nil for none.
func (s *Store) FunctionsOf(ctx context.Context, worker string) ([]byte, error) {
	b, err := redis.Bytes(s.do(ctx, "HGET", s.keys.functions, worker))
	if errors.Is(err, redis.ErrNil) {
		return nil, nil
	}
	return b, err
}

// Listings returns the listings that workers have published, in order: nil for none, and for those of more than most
// bytes.
func (s *Store) Listings(ctx context.Context, workers []string, most int) ([][]byte, error) {
	return s.fields(ctx, s.keys.functions, workers, most)
}

// StatusMark stands behind a worker's id in the functions hash, for its status.
const StatusMark = " status"
