package delayed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// pulse is what a heartbeat learned about one queue.
type pulse struct {
	alive  bool // the heartbeat was renewed; false: it had expired
	claims int  // claims that Redis holds for the worker; -1 when not asked for
	// version is that of the queue's control hash: 0 if there is none, -1 when not asked for.
	version int64
}

// beat renews a worker's heartbeats on stores of one slot, and returns Redis's time.
func beat(
	ctx context.Context, l *link, stores []*store, worker string, life time.Duration, count, control bool,
) ([]pulse, time.Time, error) {
	keys := make([]string, 0, 3*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.heartbeat+worker, s.keys.processing+worker, s.keys.control)
	}
	reply, err := l.eval(ctx, scriptBeat, keys, life.Milliseconds(), flag(count), flag(control))
	values, err := ints(reply, err, 2+3*len(stores))
	if err != nil {
		return nil, time.Time{}, err
	}
	pulses := make([]pulse, len(stores))
	for i := range pulses {
		pulses[i] = pulse{alive: values[2+3*i] == 1, claims: int(values[3+3*i]), version: values[4+3*i]}
	}
	return pulses, time.Unix(values[0], values[1]*1000), nil
}

// register makes the worker known and returns the tokens of its claims that stand.
func (s *store) register(ctx context.Context, worker string, life time.Duration, value string) ([]string, error) {
	keys := []string{s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker}
	return redis.Strings(s.eval(ctx, scriptRegister, keys, life.Milliseconds(), worker, value))
}

// unregister forgets a worker that stops; false means that it still holds claims.
func (s *store) unregister(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.eval(ctx, scriptUnregister, s.workerKeys(worker), worker))
}

// forget drops a dead worker of which nothing is left.
func (s *store) forget(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.eval(ctx, scriptForget, s.workerKeys(worker), worker))
}

func (s *store) workerKeys(worker string) []string {
	return []string{
		s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker, s.keys.claims + worker,
		s.keys.control, s.keys.functions,
	}
}

// publish notes which functions a worker runs, as a listing. It answers false if the worker is not registered.
func (s *store) publish(ctx context.Context, worker string, listing []byte) (bool, error) {
	return redis.Bool(s.eval(ctx, scriptPublish, []string{s.keys.heartbeat + worker, s.keys.functions}, worker,
		listing))
}

// functionsOf returns the listing that a worker has published, nil for none.
func (s *store) functionsOf(ctx context.Context, worker string) ([]byte, error) {
	b, err := redis.Bytes(s.read(ctx, "HGET", s.keys.functions, worker))
	if errors.Is(err, redis.ErrNil) {
		return nil, nil
	}
	return b, err
}

// What mark notes.
const (
	markAlone   = "alone"   // the token of the claim that runs with nothing else in hand
	markStopped = "stopped" // the worker stops in good order
)

// mark notes what a worker's death would say of its claims; "" takes a note back.
func (s *store) mark(ctx context.Context, worker, note, value string) error {
	_, err := s.eval(ctx, scriptMark, []string{s.keys.claims + worker}, note, value)
	return err
}

// tokens returns the tokens of a worker's claims.
func (s *store) tokens(ctx context.Context, worker string) ([]string, error) {
	return redis.Strings(s.read(ctx, "HKEYS", s.keys.processing+worker))
}

// todo is what check found on one queue.
type todo struct {
	pending int
	due     time.Duration // until the next scheduled task or retry; negative: none
	parked  int
	// suspects are pending too, in a list of their own.
	suspects int
	group    time.Duration // until the next group is due; negative: none
}

// check looks at stores of one slot.
func check(ctx context.Context, src Source, stores []*store) ([]todo, error) {
	keys := make([]string, 0, 6*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.list, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.groups, s.keys.suspects)
	}
	reply, err := evalOn(ctx, src, scriptCheck, keys, nil)
	values, err := ints(reply, err, 5*len(stores))
	if err != nil {
		return nil, err
	}
	todos := make([]todo, len(stores))
	for i := range todos {
		v := values[5*i:]
		todos[i] = todo{
			pending: int(v[0]), due: time.Duration(v[1]) * time.Millisecond, parked: int(v[2]),
			group: time.Duration(v[3]) * time.Millisecond, suspects: int(v[4]),
		}
	}
	return todos, nil
}

// largeTask is a filed task whose message is too large to be read.
type largeTask struct {
	id   string
	size int
}

// move makes up to most due tasks of one set pending and returns the time until the next one is due, negative for none.
// Due tasks that are too large stay where they are.
func (s *store) move(
	ctx context.Context, from shelf, most int,
) (moved int, next time.Duration, large []largeTask, err error) {
	keys := []string{s.shelfKey(from), s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti}
	reply, err := redis.Values(s.eval(ctx, scriptMove, keys, most, maxClaimBytes, wire.WorkerLimits.Bytes))
	if err != nil {
		return 0, 0, nil, err
	}
	var ms int64
	rest, err := redis.Scan(reply, &moved, &ms)
	for err == nil && len(rest) > 0 {
		var t largeTask
		rest, err = redis.Scan(rest, &t.id, &t.size)
		large = append(large, t)
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("%w: move: %w", errReply, err)
	}
	return moved, time.Duration(ms) * time.Millisecond, large, nil
}

// shelfKey returns the key of a set.
func (s *store) shelfKey(of shelf) string {
	return [...]string{
		shelfScheduled: s.keys.scheduled, shelfRetry: s.keys.retry, shelfParked: s.keys.parked,
		shelfArchived: s.keys.archived,
	}[of]
}

// filed is a task of a sorted set, without its message.
type filed struct {
	id   string
	info []byte // nil when nothing is known
}

// parkedPage reads a page of the parked set, what was parked last first, and each page in the order of parking; with
// expired, from the beginning, and only tasks whose time there is over by our clock: condemn asks Redis's. Messages
// stay where they are: a megabyte each, read by every worker at every look, would keep Redis busy.
func (s *store) parkedPage(ctx context.Context, offset, n int, expired bool) ([]filed, error) {
	var ids []string
	var err error
	if expired {
		now := s.now().UnixMilli()
		ids, err = redis.Strings(s.read(ctx, "ZRANGEBYSCORE", s.keys.parked, "-inf", now, "LIMIT", offset, n))
	} else {
		ids, err = redis.Strings(s.read(ctx, "ZRANGE", s.keys.parked, -offset-n, -offset-1))
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	infos, err := s.infos(ctx, ids)
	if err != nil {
		return nil, err
	}
	page := make([]filed, len(ids))
	for i := range ids {
		page[i] = filed{ids[i], infos[i]}
	}
	return page, nil
}

// condemn archives tasks that were parked for too long, or are due and too large; info says why.
func (s *store) condemn(ctx context.Context, from shelf, keep time.Duration, tasks []filed) (int, error) {
	args := make([]any, 0, 2+2*len(tasks))
	args = append(args, statsLife, keep.Milliseconds())
	for i := range tasks {
		args = append(args, tasks[i].id, tasks[i].info)
	}
	keys := []string{s.shelfKey(from), s.keys.archived, s.keys.info, s.statsKey(), s.keys.locks, s.keys.locked}
	return redis.Int(s.eval(ctx, scriptCondemn, keys, args...))
}

// trim deletes archived tasks that are too old or too many, at most n.
func (s *store) trim(ctx context.Context, most, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptTrim, []string{s.keys.archived, s.keys.tasks, s.keys.info, s.statsKey()},
		statsLife, most, n))
}
