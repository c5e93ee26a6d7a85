package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// Sight is what a sweeper saw of one queue.
type Sight struct {
	Mine          bool // the advisory lock is this sweeper's
	Workers       []string
	Pending, Noti int
	Legacy        int // claims of legacy workers
}

// Survey looks at stores of one slot and tries to take, or renews, their advisory locks.
func Survey(ctx context.Context, l *Link, stores []*Store, sweeper string, lock time.Duration) ([]Sight, error) {
	keys := make([]string, 0, 5*len(stores))
	for _, s := range stores {
		keys = append(keys, s.Keys.sweeper, s.Keys.Workers, s.Keys.List, s.Keys.Noti, s.Keys.Legacy)
	}
	reply, err := redis.Values(l.eval(ctx, scriptSurvey, keys, sweeper, lock.Milliseconds()))
	if err != nil {
		return nil, err
	}
	if len(reply) != len(stores) {
		return nil, fmt.Errorf("%w: %d queues from survey", ErrReply, len(reply))
	}
	sights := make([]Sight, len(stores))
	for i := range reply {
		row, err := redis.Values(reply[i], nil)
		if err != nil || len(row) != 5 {
			return nil, fmt.Errorf("%w: survey", ErrReply)
		}
		s := &sights[i]
		var mine int
		if _, err := redis.Scan(row, &mine, &s.Workers, &s.Pending, &s.Noti, &s.Legacy); err != nil {
			return nil, fmt.Errorf("%w: survey: %w", ErrReply, err)
		}
		s.Mine = mine == 1
	}
	return sights, nil
}

// livesMost bounds the heartbeats that one script looks at.
const livesMost = 1000

// Lifetimes says for each worker how long its heartbeat lasts if it is not renewed; negative: it does not exist.
func (s *Store) Lifetimes(ctx context.Context, l *Link, workers []string) ([]time.Duration, error) {
	lives := make([]time.Duration, 0, len(workers))
	for page := range slices.Chunk(workers, livesMost) {
		keys := make([]string, len(page))
		for i, w := range page {
			keys[i] = s.Keys.Heartbeat + w
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

// LegacyAlive asks for the key that a legacy worker's id names, wherever in a cluster it is.
func (s *Store) LegacyAlive(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	l := &Link{Src: s.Src, Key: id}
	defer l.HangUp()
	if _, err := l.Open(ctx); err != nil {
		return false, err
	}
	return redis.Bool(l.do(ctx, "EXISTS", id))
}

// Ages says whether the queue has anything that goes when it is old enough.
func (s *Store) Ages(ctx context.Context) (bool, error) {
	k := &s.Keys
	n, err := redis.Int(s.Read(ctx, "EXISTS", k.Archived, k.Parked, k.completed, k.locked, k.revoked))
	return n > 0, err
}

// Claimed is a claim as a sweeper reads it.
type Claimed struct {
	Token   string
	Message []byte
	Size    int // of a message that is too large to be read; 0: it was read
}

// ClaimTokens returns tokens of a processing hash: all of them if there are at most n, else some n.
// The hash is empty when total is 0.
func (s *Store) ClaimTokens(ctx context.Context, hash string, n int) (tokens []string, total int, err error) {
	total, err = redis.Int(s.Read(ctx, "HLEN", hash))
	if err != nil || total == 0 {
		return nil, total, err
	}
	// HRANDFIELD with a positive count returns distinct fields, all of them if there are fewer.
	tokens, err = redis.Strings(s.Read(ctx, "HRANDFIELD", hash, n))
	return tokens, total, err
}

// Claims reads the first of the claims with these tokens, as many as fit into one call. It returns how many tokens it
// has read; claims that have ended are left out of the page.
func (s *Store) Claims(ctx context.Context, hash string, tokens []string) (page []Claimed, read int, err error) {
	messages, err := s.SomeFields(ctx, hash, tokens, wire.WorkerLimits.Bytes)
	for i, token := range tokens[:min(len(tokens), len(messages))] {
		if m := messages[i]; m.Exists() {
			page = append(page, Claimed{token, m.Bytes, m.Size})
		}
	}
	return page, len(messages), err
}

// Verdict is what happens to a dead worker's claim.
type Verdict struct {
	Claimed
	Action  string // requeue, archive, count or alone
	Renewed []byte // the message as it goes on; none if it is too large: it goes on as it is
	ID      string // to archive it under
	Info    []byte
	Awaited bool   // somebody may wait for its end
	Digest  string // its field in the deaths hash, for count and alone
}

// SweepLimits are the bounds of what a sweep does.
type SweepLimits struct {
	MaxDeaths   int
	DeathsLife  time.Duration
	ArchiveKeep time.Duration
	ArchiveMost int
}

// Death is what is known of how a worker died.
type Death struct {
	Stopped bool   // it was stopping in good order: nothing has died with it
	Alone   string // the token of the claim that ran with nothing else in hand; "" for none
	Sole    bool   // it held one claim only
	Legacy  bool   // it was a legacy worker, which runs one task at a time
}

// DeathOf reads what a worker has noted, for its claims in hash.
func (s *Store) DeathOf(ctx context.Context, worker, hash string) (d Death, err error) {
	notes, err := redis.Strings(s.Read(ctx, "HMGET", s.Keys.claims+worker, MarkAlone, MarkStopped))
	if err != nil {
		return d, err
	}
	d.Alone, d.Stopped = notes[0], notes[1] != ""
	if d.Alone != "" {
		stands, err := redis.Bool(s.Read(ctx, "HEXISTS", hash, d.Alone))
		if err != nil {
			return d, err
		}
		if !stands {
			d.Alone = "" // it has ended
		}
	}
	return d, nil
}

// Sweep takes claims from a dead worker. alive is true, and nothing happens, if liveness exists. Claims come last
// claimed first.
func (s *Store) Sweep(
	ctx context.Context, liveness, hash string, lim SweepLimits, verdicts []Verdict,
) (requeued, archived int, alive bool, err error) {
	args := make([]any, 0, 5+8*len(verdicts))
	args = append(args, statsLife, int64(lim.DeathsLife/time.Second), lim.MaxDeaths, lim.ArchiveKeep.Milliseconds(),
		lim.ArchiveMost)
	for i := range verdicts {
		v := &verdicts[i]
		var old any = v.Message
		if v.Size > 0 {
			old = v.Size
		}
		args = append(args, v.Token, old, v.Renewed, v.Action, v.ID, v.Info, v.Digest, s.channel(v.ID, v.Awaited))
	}
	keys := []string{
		liveness, hash, s.Keys.List, s.Keys.Noti, s.Keys.Tasks, s.Keys.Archived, s.Keys.info, s.Keys.deaths,
		s.StatsKey(),
		s.Keys.locks, s.Keys.locked, s.Keys.completed, s.Keys.results, s.Keys.revoked,
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

// Repair mends the notify list: removes what is too much, adds at most n of what is missing. It returns by how much it
// changed.
func (s *Store) Repair(ctx context.Context, n int) (change int, err error) {
	reply, err := s.eval(ctx, scriptRepair, []string{s.Keys.List, s.Keys.Noti}, n)
	values, err := ints(reply, err, 3)
	if err != nil {
		return 0, err
	}
	return int(values[2]), nil
}
