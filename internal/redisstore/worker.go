package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/wire"
)

// Pulse is a heartbeat's reply for one queue.
type Pulse struct {
	Alive  bool // the heartbeat was renewed; false: it had expired
	Claims int  // claims that Redis holds for the worker; -1 when not asked for, or if their key is of another type
	// Version is that of the queue's control hash: 0 if there is none, -1 when not asked for, or if it is of another
	// type.
	Version int64
}

// Beat renews a worker's heartbeats on stores of one slot, and returns Redis's time. While a key is of another type it
// renews them all the same, in one call more.
func Beat(
	ctx context.Context, l *Link, stores []*Store, worker string, life time.Duration, count, control bool,
) (pulses []Pulse, now time.Time, err error) {
	for page := range slices.Chunk(stores, slotPage) {
		some, at, err := beatPage(ctx, l, page, worker, life, count, control, false)
		if IsWrongType(err) {
			some, at, err = beatPage(ctx, l, page, worker, life, count, control, true)
			if answer.Is(err) { // the user may not call TYPE
				some, at, err = beatPage(ctx, l, page, worker, life, false, false, false)
			}
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		pulses, now = append(pulses, some...), at
	}
	return pulses, now, nil
}

// beatPage is Beat for stores of one call. mistyped: some key is of another type.
func beatPage(
	ctx context.Context, l *Link, stores []*Store, worker string, life time.Duration, count, control, mistyped bool,
) (pulses []Pulse, now time.Time, err error) {
	keys := make([]string, 0, 3*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.heartbeat+worker, s.keys.processing+worker, s.keys.control)
	}
	reply, err := l.eval(ctx, ScriptBeat, keys, life.Milliseconds(), flag(count), flag(control), flag(mistyped))
	values, err := ints(reply, err, 2+3*len(stores))
	if err != nil {
		return nil, time.Time{}, err
	}
	for v := range slices.Chunk(values[2:], 3) {
		pulses = append(pulses, Pulse{Alive: v[0] == 1, Claims: int(v[1]), Version: v[2]})
	}
	return pulses, time.Unix(values[0], values[1]*1000), nil
}

// Known reports for each of the stores, which are of one slot, whether Redis has the worker's functions. It puts the
// worker back into worker sets that have lost it, so that sweepers see it. Call it after Beat, with the stores on which
// the worker is alive. Keys of another type count as known.
func Known(ctx context.Context, l *Link, stores []*Store, worker string) (known []bool, err error) {
	for page := range slices.Chunk(stores, slotPage) {
		keys := make([]string, 0, 2*len(page))
		for _, s := range page {
			keys = append(keys, s.keys.workers, s.keys.functions)
		}
		reply, err := l.eval(ctx, scriptKnown, keys, worker)
		switch {
		case IsWrongType(err) && len(page) > 1:
			for _, s := range page {
				one, err := Known(ctx, l, []*Store{s}, worker)
				if err != nil {
					return nil, err
				}
				known = append(known, one...)
			}
			continue
		case IsWrongType(err):
			known = append(known, true)
			continue
		}
		values, err := ints(reply, err, len(page))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			known = append(known, v == 1)
		}
	}
	return known, nil
}

// Register registers the worker and returns the tokens of its claims that stand.
func (s *Store) Register(ctx context.Context, worker string, life time.Duration, value string) ([]string, error) {
	keys, args := s.registration(worker, life, value)
	return redis.Strings(s.eval(ctx, ScriptRegister, keys, args...))
}

func (s *Store) registration(worker string, life time.Duration, value string) (keys []string, args []any) {
	keys = []string{s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker}
	return keys, []any{life.Milliseconds(), worker, value}
}

// Unregister removes the registration of a worker that stops, and reports false if it still holds claims.
func (s *Store) Unregister(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.eval(ctx, scriptUnregister, s.workerKeys(worker), worker))
}

// Forget removes the registration of a dead worker that holds no claims.
func (s *Store) Forget(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.eval(ctx, scriptForget, s.workerKeys(worker), worker))
}

func (s *Store) workerKeys(worker string) []string {
	return []string{
		s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker, s.keys.claims + worker,
		s.keys.control, s.keys.functions,
	}
}

// Publish writes the listing of the functions that a worker runs. It reports false if the worker is not registered.
func (s *Store) Publish(ctx context.Context, worker string, listing []byte) (bool, error) {
	keys, args := s.publication(worker, listing)
	return redis.Bool(s.eval(ctx, scriptPublish, keys, args...))
}

func (s *Store) publication(worker string, listing []byte) (keys []string, args []any) {
	id, _ := strings.CutSuffix(worker, statusMark)
	return []string{s.keys.heartbeat + id, s.keys.functions}, []any{worker, listing}
}

// statusMark stands behind a worker's id in the functions hash, for its status.
const statusMark = " status"

// PublishStatus writes what a worker does. It reports false if the worker is not registered.
func (s *Store) PublishStatus(ctx context.Context, worker string, status []byte) (bool, error) {
	return s.Publish(ctx, worker+statusMark, status)
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

// Notes that Mark writes, with the meaning of their values.
const (
	MarkAlone   = "alone"   // the token of the claim that runs with nothing else in hand
	MarkStopped = "stopped" // the worker stops in good order
)

// Mark notes in a worker's claims hash what sweepers may conclude from its death; the value "" removes the note.
func (s *Store) Mark(ctx context.Context, worker, note, value string) error {
	_, err := s.eval(ctx, scriptMark, []string{s.keys.claims + worker}, note, value)
	return err
}

// Tokens returns the tokens of a worker's claims.
func (s *Store) Tokens(ctx context.Context, worker string) ([]string, error) {
	return redis.Strings(s.do(ctx, "HKEYS", s.keys.processing+worker))
}

// Todo is what Check found on one queue.
type Todo struct {
	Pending int
	Due     time.Duration // until the next scheduled task or retry; negative: none
	Parked  int
	// Suspects are pending too, in a list of their own.
	Suspects int
	Group    time.Duration // until the next group is due; negative: none
	// Unknown: a key is of another type, so that nothing is known of the queue.
	Unknown bool
}

// Check returns what there is to do on stores of one slot. If keys of a store are of another type, the error says so,
// and the todos of the other stores are right. After other errors todos is nil.
func Check(ctx context.Context, src Source, stores []*Store) (todos []Todo, err error) {
	return perStore(stores, slotPage, Todo{Due: -1, Group: -1, Unknown: true}, func(page []*Store) ([]Todo, error) {
		return checkPage(ctx, src, page)
	})
}

// checkPage is Check for stores of one call.
func checkPage(ctx context.Context, src Source, stores []*Store) ([]Todo, error) {
	keys := make([]string, 0, 6*len(stores))
	for _, s := range stores {
		k := &s.keys
		keys = append(keys, k.list, k.scheduled, k.retry, k.parked, k.groups, k.suspects)
	}
	reply, err := evalOn(ctx, src, scriptCheck, keys, nil)
	values, err := ints(reply, err, 5*len(stores))
	if err != nil {
		return nil, err
	}
	todos := make([]Todo, 0, len(stores))
	for v := range slices.Chunk(values, 5) {
		todos = append(todos, Todo{
			Pending: int(v[0]), Due: time.Duration(v[1]) * time.Millisecond, Parked: int(v[2]),
			Group: time.Duration(v[3]) * time.Millisecond, Suspects: int(v[4]),
		})
	}
	return todos, nil
}

// LargeTask is a filed task whose message is too large to be read.
type LargeTask struct {
	ID   string
	Size int
}

// Move makes up to most due tasks of one set pending and returns the time until the next one is due, negative for none.
// It leaves due tasks that are too large where they are, and returns them.
func (s *Store) Move(
	ctx context.Context, from Shelf, most int,
) (moved int, next time.Duration, large []LargeTask, err error) {
	keys := []string{
		s.shelfKey(from), s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti, s.keys.metrics + latenessMark,
	}
	reply, err := redis.Values(s.eval(ctx, scriptMove, keys, most, MaxCallBytes, wire.WorkerLimits.Bytes, statsLife))
	if err != nil {
		return 0, 0, nil, err
	}
	var ms int64
	rest, err := redis.Scan(reply, &moved, &ms)
	for err == nil && len(rest) > 0 {
		var t LargeTask
		rest, err = redis.Scan(rest, &t.ID, &t.Size)
		large = append(large, t)
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("%w: move: %w", ErrReply, err)
	}
	return moved, time.Duration(ms) * time.Millisecond, large, nil
}

// shelfKey returns the key of a set.
func (s *Store) shelfKey(of Shelf) string {
	return [...]string{
		ShelfScheduled: s.keys.scheduled, ShelfRetry: s.keys.retry, ShelfParked: s.keys.parked,
		ShelfArchived: s.keys.archived,
	}[of]
}

// Filed is a task of a sorted set, without its message.
type Filed struct {
	ID   string
	Info []byte // nil for none
	Lock string // for Condemn: the lock that its message names
}

// ParkedPage reads a page of the parked set, without messages: reading up to a megabyte for each task, in every worker,
// would keep Redis busy. The first page holds the tasks that were parked last; each page is in the order of parking.
// With expired, pages begin with the oldest task and hold only tasks that have expired by our clock; the script condemn
// decides by Redis's clock.
func (s *Store) ParkedPage(ctx context.Context, offset, n int, expired bool) ([]Filed, error) {
	var ids []string
	var err error
	if expired {
		now := s.Now().UnixMilli()
		ids, err = redis.Strings(s.do(ctx, "ZRANGEBYSCORE", s.keys.parked, "-inf", now, "LIMIT", offset, n))
	} else {
		ids, err = redis.Strings(s.do(ctx, "ZRANGE", s.keys.parked, -offset-n, -offset-1))
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	infos, err := s.infos(ctx, ids)
	if err != nil {
		return nil, err
	}
	page := make([]Filed, len(ids))
	for i := range ids {
		page[i] = Filed{ID: ids[i], Info: infos[i]}
	}
	return page, nil
}

// Condemn archives tasks that were parked for too long, or are due and too large. Their infos say why.
func (s *Store) Condemn(ctx context.Context, from Shelf, keep time.Duration, tasks []Filed) (int, error) {
	args := make([]any, 0, 2+3*len(tasks))
	args = append(args, statsLife, keep.Milliseconds())
	for i := range tasks {
		args = append(args, tasks[i].ID, tasks[i].Info, tasks[i].Lock)
	}
	keys := []string{s.shelfKey(from), s.keys.archived, s.keys.info, s.StatsKey(), s.keys.locks}
	return redis.Int(s.eval(ctx, scriptCondemn, keys, args...))
}

// Trim deletes archived tasks that are too old or too many, at most n.
func (s *Store) Trim(ctx context.Context, most, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptTrim, []string{s.keys.archived, s.keys.tasks, s.keys.info, s.StatsKey()},
		statsLife, most, n))
}
