package delayed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// sight is what a sweeper saw of one queue.
type sight struct {
	mine          bool // the advisory lock is this sweeper's
	workers       []string
	pending, noti int
	legacy        int // claims of legacy workers
}

// survey looks at stores of one slot and tries to take, or renews, their advisory locks.
func survey(ctx context.Context, l *link, stores []*store, sweeper string, lock time.Duration) ([]sight, error) {
	keys := make([]string, 0, 5*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.sweeper, s.keys.workers, s.keys.list, s.keys.noti, s.keys.legacy)
	}
	reply, err := redis.Values(l.eval(ctx, scriptSurvey, keys, sweeper, lock.Milliseconds()))
	if err != nil {
		return nil, err
	}
	if len(reply) != len(stores) {
		return nil, fmt.Errorf("%w: %d queues from survey", errReply, len(reply))
	}
	sights := make([]sight, len(stores))
	for i := range reply {
		row, err := redis.Values(reply[i], nil)
		if err != nil || len(row) != 5 {
			return nil, fmt.Errorf("%w: survey", errReply)
		}
		s := &sights[i]
		var mine int
		if _, err := redis.Scan(row, &mine, &s.workers, &s.pending, &s.noti, &s.legacy); err != nil {
			return nil, fmt.Errorf("%w: survey: %w", errReply, err)
		}
		s.mine = mine == 1
	}
	return sights, nil
}

// livesMost bounds the heartbeats that one script looks at.
const livesMost = 1000

// lifetimes says for each worker how long its heartbeat lasts if it is not renewed; negative: it does not exist.
func (s *store) lifetimes(ctx context.Context, l *link, workers []string) ([]time.Duration, error) {
	lives := make([]time.Duration, 0, len(workers))
	for page := range slices.Chunk(workers, livesMost) {
		keys := make([]string, len(page))
		for i, w := range page {
			keys[i] = s.keys.heartbeat + w
		}
		reply, err := l.eval(ctx, scriptLives, keys)
		values, err := ints(reply, err, len(page))
		if err != nil {
			return nil, err
		}
		for _, ms := range values {
			lives = append(lives, time.Duration(ms)*time.Millisecond)
		}
	}
	return lives, nil
}

// legacyAlive asks for the key that a legacy worker's id names, wherever in a cluster it is.
func (s *store) legacyAlive(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	l := &link{src: s.src, key: id}
	defer l.hangUp()
	if _, err := l.open(ctx); err != nil {
		return false, err
	}
	return redis.Bool(l.do(ctx, "EXISTS", id))
}

// ages says whether the queue has anything that goes when it is old enough.
func (s *store) ages(ctx context.Context) (bool, error) {
	k := &s.keys
	n, err := redis.Int(s.read(ctx, "EXISTS", k.archived, k.parked, k.completed, k.locked, k.revoked))
	return n > 0, err
}

// claimed is a claim as a sweeper reads it.
type claimed struct {
	token   string
	message []byte
	size    int // of a message that is too large to be read; 0: it was read
}

// claimTokens returns tokens of a processing hash: all of them if there are at most n, else some n.
// The hash is empty when total is 0.
func (s *store) claimTokens(ctx context.Context, hash string, n int) (tokens []string, total int, err error) {
	total, err = redis.Int(s.read(ctx, "HLEN", hash))
	if err != nil || total == 0 {
		return nil, total, err
	}
	// HRANDFIELD with a positive count returns distinct fields, all of them if there are fewer.
	tokens, err = redis.Strings(s.read(ctx, "HRANDFIELD", hash, n))
	return tokens, total, err
}

// claims reads the first of the claims with these tokens, as many as fit into one call. It returns how many tokens it
// has read; claims that have ended are left out of the page.
func (s *store) claims(ctx context.Context, hash string, tokens []string) (page []claimed, read int, err error) {
	messages, err := s.someFields(ctx, hash, tokens, wire.WorkerLimits.Bytes)
	for i, token := range tokens[:min(len(tokens), len(messages))] {
		if m := messages[i]; m.exists() {
			page = append(page, claimed{token, m.bytes, m.size})
		}
	}
	return page, len(messages), err
}

// verdict is what happens to a dead worker's claim.
type verdict struct {
	claimed
	action  string // requeue, archive, count or alone
	renewed []byte // the message as it goes on; none if it is too large: it goes on as it is
	id      string // to archive it under
	info    []byte
	awaited bool   // somebody may wait for its end
	digest  string // its field in the deaths hash, for count and alone
}

// sweepLimits are the bounds of what a sweep does.
type sweepLimits struct {
	maxDeaths   int
	deathsLife  time.Duration
	archiveKeep time.Duration
	archiveMost int
}

// death is what is known of how a worker died.
type death struct {
	stopped bool   // it was stopping in good order: nothing has died with it
	alone   string // the token of the claim that ran with nothing else in hand; "" for none
	sole    bool   // it held one claim only
	legacy  bool   // it was a legacy worker, which runs one task at a time
}

// deathOf reads what a worker has noted, for its claims in hash.
func (s *store) deathOf(ctx context.Context, worker, hash string) (d death, err error) {
	notes, err := redis.Strings(s.read(ctx, "HMGET", s.keys.claims+worker, markAlone, markStopped))
	if err != nil {
		return d, err
	}
	d.alone, d.stopped = notes[0], notes[1] != ""
	if d.alone != "" {
		stands, err := redis.Bool(s.read(ctx, "HEXISTS", hash, d.alone))
		if err != nil {
			return d, err
		}
		if !stands {
			d.alone = "" // it has ended
		}
	}
	return d, nil
}

// sweep takes claims from a dead worker. alive is true, and nothing happens, if liveness exists. Claims come last
// claimed first.
func (s *store) sweep(
	ctx context.Context, liveness, hash string, lim sweepLimits, verdicts []verdict,
) (requeued, archived int, alive bool, err error) {
	args := make([]any, 0, 5+8*len(verdicts))
	args = append(args, statsLife, int64(lim.deathsLife/time.Second), lim.maxDeaths, lim.archiveKeep.Milliseconds(),
		lim.archiveMost)
	for i := range verdicts {
		v := &verdicts[i]
		var old any = v.message
		if v.size > 0 {
			old = v.size
		}
		args = append(args, v.token, old, v.renewed, v.action, v.id, v.info, v.digest, s.channel(v.id, v.awaited))
	}
	keys := []string{
		liveness, hash, s.keys.list, s.keys.noti, s.keys.tasks, s.keys.archived, s.keys.info, s.keys.deaths,
		s.statsKey(),
		s.keys.locks, s.keys.locked, s.keys.completed, s.keys.results, s.keys.revoked,
	}
	reply, err := s.eval(ctx, scriptSweep, keys, args...)
	values, err := ints(reply, err, 2)
	if err != nil {
		return 0, 0, false, err
	}
	if values[0] < 0 {
		return 0, 0, true, nil
	}
	return int(values[0]), int(values[1]), false, nil
}

// repair mends the notify list: removes what is too much, adds at most n of what is missing. It returns by how much it
// changed.
func (s *store) repair(ctx context.Context, n int) (change int, err error) {
	reply, err := s.eval(ctx, scriptRepair, []string{s.keys.list, s.keys.noti}, n)
	values, err := ints(reply, err, 3)
	if err != nil {
		return 0, err
	}
	return int(values[2]), nil
}
