package delayed

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// pulse is what a heartbeat learned about one queue.
type pulse struct {
	alive  bool // the heartbeat was renewed; false: it had expired
	claims int  // claims that Redis holds for the worker; -1 when not asked for
	// version is that of the queue's control hash: 0 if there is none, -1 when not asked for.
	version int64
}

// beat renews a worker's heartbeats on stores of one slot, and returns Redis's time.
func beat(ctx context.Context, l *link, stores []*store, worker string, life time.Duration, count, control bool) ([]pulse, time.Time, error) {
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
	return []string{s.keys.heartbeat + worker, s.keys.workers, s.keys.processing + worker, s.keys.claims + worker, s.keys.control}
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
	group   time.Duration // until the next group is due; negative: none
}

// check looks at stores of one slot.
func check(ctx context.Context, src Source, stores []*store) ([]todo, error) {
	keys := make([]string, 0, 5*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.list, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.groups)
	}
	reply, err := evalOn(ctx, src, scriptCheck, keys, nil)
	values, err := ints(reply, err, 4*len(stores))
	if err != nil {
		return nil, err
	}
	todos := make([]todo, len(stores))
	for i := range todos {
		v := values[4*i:]
		todos[i] = todo{int(v[0]), time.Duration(v[1]) * time.Millisecond, int(v[2]), time.Duration(v[3]) * time.Millisecond}
	}
	return todos, nil
}

// move makes up to most due tasks of one set pending and returns the time until the next one is due, negative for none.
func (s *store) move(ctx context.Context, from shelf, most int) (moved int, next time.Duration, err error) {
	set := s.keys.scheduled
	if from == shelfRetry {
		set = s.keys.retry
	}
	reply, err := s.eval(ctx, scriptMove, []string{set, s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti}, most, maxClaimBytes)
	values, err := ints(reply, err, 2)
	if err != nil {
		return 0, 0, err
	}
	return int(values[0]), time.Duration(values[1]) * time.Millisecond, nil
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

// condemn archives tasks that were parked for too long; info says why.
func (s *store) condemn(ctx context.Context, keep time.Duration, tasks []filed) (int, error) {
	args := make([]any, 0, 2+2*len(tasks))
	args = append(args, statsLife, keep.Milliseconds())
	for i := range tasks {
		args = append(args, tasks[i].id, tasks[i].info)
	}
	keys := []string{s.keys.parked, s.keys.archived, s.keys.info, s.statsKey(), s.keys.locks, s.keys.locked}
	return redis.Int(s.eval(ctx, scriptCondemn, keys, args...))
}

// trim deletes archived tasks that are too old or too many, at most n.
func (s *store) trim(ctx context.Context, most, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptTrim, []string{s.keys.archived, s.keys.tasks, s.keys.info, s.statsKey()}, statsLife, most, n))
}
