package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// SweepPage bounds the claims that one script takes.
	SweepPage = 50
	// RepairPage bounds the notifications that one script adds.
	RepairPage = 1000
)

// SurveyedQueue is the state of one queue that a sweeper needs.
type SurveyedQueue struct {
	Locked        bool // the advisory lock is this sweeper's
	Workers       []string
	Pending, Noti int
	Legacy        int // claims of legacy workers
}

// surveyedWorkers bounds the ids of workers that one script returns.
const surveyedWorkers = 1000

// Survey reads the state of stores of one slot, and takes or renews their advisory locks where they are free or ours.
// If keys of a store are of another type, the error says so, it has nothing and no lock there, and what it has of the
// other stores is right. After other errors queues is nil.
func Survey(
	ctx context.Context, l *Link, stores []*Store, sweeper string, lock time.Duration,
) (queues []SurveyedQueue, err error) {
	return perStore(stores, slotPage, SurveyedQueue{}, func(page []*Store) ([]SurveyedQueue, error) {
		return surveyPage(ctx, l, page, sweeper, lock)
	})
}

func surveyPage(
	ctx context.Context, l *Link, stores []*Store, sweeper string, lock time.Duration,
) ([]SurveyedQueue, error) {
	keys := make([]string, 0, 5*len(stores))
	for _, s := range stores {
		keys = append(keys, s.keys.sweeper, s.keys.workers, s.keys.list, s.keys.noti, s.keys.legacy)
	}
	answer, err := l.eval(ctx, "survey", keys, sweeper, lock.Milliseconds(), surveyedWorkers)
	reply, err := values(answer, err, len(stores))
	if err != nil {
		return nil, err
	}
	queues := make([]SurveyedQueue, len(stores))
	for i := range reply {
		row, err := values(reply[i], nil, 5)
		if err != nil {
			return nil, fmt.Errorf("%w: survey: %w", ErrReply, err)
		}
		s := &queues[i]
		var mine int
		if _, err := redis.Scan(row, &mine, &s.Workers, &s.Pending, &s.Noti, &s.Legacy); err != nil {
			return nil, fmt.Errorf("%w: survey: %w", ErrReply, err)
		}
		s.Locked = mine == 1
		if row[1] == nil {
			if s.Workers, err = stores[i].scanWorkers(ctx, l); err != nil {
				return nil, err
			}
		}
	}
	return queues, nil
}

// scanWorkers returns the ids in the worker set, which may be many.
func (s *Store) scanWorkers(ctx context.Context, l *Link) ([]string, error) {
	var workers []string
	for cursor := "0"; ; {
		reply, err := redis.Values(l.do(ctx, "SSCAN", s.keys.workers, cursor, "COUNT", surveyedWorkers))
		if err != nil {
			return nil, err
		}
		var some []string
		if _, err := redis.Scan(reply, &cursor, &some); err != nil {
			return nil, fmt.Errorf("%w: SSCAN: %w", ErrReply, err)
		}
		if workers = append(workers, some...); cursor == "0" {
			slices.Sort(workers)
			return slices.Compact(workers), nil // a scan may return some twice
		}
	}
}

// livesMost bounds the heartbeats that one script looks at.
const livesMost = 250

// Lifetimes returns for each worker how long its heartbeat lasts if it is not renewed; negative: there is none.
func (s *Store) Lifetimes(ctx context.Context, l *Link, workers []string) ([]time.Duration, error) {
	lives := make([]time.Duration, 0, len(workers))
	for page := range slices.Chunk(workers, livesMost) {
		keys := make([]string, len(page))
		for i, w := range page {
			keys[i] = s.keys.heartbeat + w
		}
		reply, err := l.eval(ctx, "lives", keys)
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

// LegacyAlive reports whether the key named by a legacy worker's id exists, on whatever node of a cluster.
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

// Ages reports whether the queue has anything that is deleted at some age.
func (s *Store) Ages(ctx context.Context) (bool, error) {
	k := &s.keys
	n, err := redis.Int(s.do(ctx, "EXISTS", k.archived, k.parked, k.completed, k.locks, k.revoked))
	return n > 0, err
}

// ClaimHash names the hash that holds claims, and the key that exists while their worker lives.
type ClaimHash struct{ key, liveness string }

// ClaimsOf returns the hash with the claims of a worker.
func (s *Store) ClaimsOf(worker string) ClaimHash {
	return ClaimHash{s.keys.processing + worker, s.keys.heartbeat + worker}
}

// LegacyClaims returns the hash with the claims of all legacy workers, to sweep the claim of one of them.
func (s *Store) LegacyClaims(worker string) ClaimHash {
	if worker == "" || s.Src.Slot(worker) != s.Slot() {
		// Another node of the cluster holds the liveness key, and LegacyAlive has asked there. This key never exists.
		return ClaimHash{s.keys.legacy, s.keys.heartbeat + "legacy"}
	}
	return ClaimHash{s.keys.legacy, worker}
}

// LegacyWorkers returns the ids of legacy workers that hold claims: all of them if there are at most n, else some n.
func (s *Store) LegacyWorkers(ctx context.Context, n int) ([]string, error) {
	ids, _, err := s.ClaimTokens(ctx, ClaimHash{key: s.keys.legacy}, n)
	return ids, err
}

// Claimed is a claim as a sweeper reads it.
type Claimed struct {
	Token   string
	Message []byte
	Size    int // of a message that is too large to be read, else 0
}

// ClaimTokens returns the tokens of all claims if there are at most n, else of some n; total is the number of claims.
func (s *Store) ClaimTokens(ctx context.Context, from ClaimHash, n int) (tokens []string, total int, err error) {
	total, err = redis.Int(s.do(ctx, "HLEN", from.key))
	if err != nil || total == 0 {
		return nil, total, err
	}
	// HRANDFIELD with a positive count returns distinct fields, all of them if there are fewer.
	tokens, err = redis.Strings(s.do(ctx, "HRANDFIELD", from.key, n))
	return tokens, total, err
}

// Claims reads the claims with these tokens in order, as many as fit into one call. It returns how many tokens it has
// dealt with; the page lacks claims that have ended.
func (s *Store) Claims(ctx context.Context, from ClaimHash, tokens []string) (page []Claimed, read int, err error) {
	messages, err := s.someFields(ctx, from.key, tokens, wire.WorkerLimits.Bytes)
	for i, token := range tokens[:min(len(tokens), len(messages))] {
		if m := messages[i]; m.Exists() {
			page = append(page, Claimed{token, m.Bytes, m.Size})
		}
	}
	return page, len(messages), err
}

// SweepAction is what happens to a dead worker's claim.
type SweepAction struct {
	Claimed
	Kind    string // requeue, archive, count or alone
	Renewed []byte // the message to write; nil if it is too large, which leaves it unchanged
	ID      string // to archive it under
	Info    []byte
	Awaited bool   // publish its end, because somebody may wait for it
	Digest  string // its field in the deaths hash, for count and alone
	Lock    string // the lock that the message names
}

// SweepLimits are the limits that a sweep applies.
type SweepLimits struct {
	MaxDeaths   int
	DeathsLife  time.Duration
	ArchiveKeep time.Duration
	ArchiveMost int
}

// Death is what is known of how a worker died.
type Death struct {
	Worker  string // its id; "" if it was a legacy worker, which has none of ours
	Stopped bool   // it was stopping in good order, so none of its tasks died with it
	Alone   string // the token of the claim that ran with nothing else in hand; "" for none
	Sole    bool   // it held one claim only
	Legacy  bool   // it was a legacy worker, which runs one task at a time
}

// DeathOf reads what a dead worker had noted with Mark.
func (s *Store) DeathOf(ctx context.Context, worker string) (d Death, err error) {
	notes, err := redis.Strings(s.do(ctx, "HMGET", s.keys.claims+worker, MarkAlone, MarkStopped))
	if err != nil {
		return d, err
	}
	d.Worker, d.Alone, d.Stopped = worker, notes[0], notes[1] != ""
	if d.Alone != "" {
		stands, err := redis.Bool(s.do(ctx, "HEXISTS", s.ClaimsOf(worker).key, d.Alone))
		if err != nil {
			return d, err
		}
		if !stands {
			d.Alone = "" // it has ended
		}
	}
	return d, nil
}

// Sweep takes claims from a dead worker, given in reverse order of claiming. If the worker lives, it does nothing and
// alive is true.
func (s *Store) Sweep(
	ctx context.Context, from ClaimHash, lim SweepLimits, actions []SweepAction,
) (requeued, archived int, alive bool, err error) {
	args := make([]any, 0, 5+9*len(actions))
	args = append(args, statsLife, int64(lim.DeathsLife/time.Second), lim.MaxDeaths, lim.ArchiveKeep.Milliseconds(),
		lim.ArchiveMost)
	for i := range actions {
		a := &actions[i]
		var old any = a.Message
		if a.Size > 0 {
			old = a.Size
		}
		args = append(args, a.Token, old, a.Renewed, a.Kind, a.ID, a.Info, a.Digest,
			s.channel(a.ID, a.Awaited), a.Lock)
	}
	keys := []string{
		from.liveness, from.key, s.keys.list, s.keys.noti, s.keys.tasks, s.keys.archived, s.keys.info, s.keys.deaths,
		s.StatsKey(),
		s.keys.locks, s.keys.completed, s.keys.results, s.keys.revoked,
	}
	reply, err := s.eval(ctx, "sweep", keys, args...)
	values, err := ints(reply, err, 2)
	if err != nil {
		return 0, 0, false, err
	}
	if values[0] < 0 {
		return 0, 0, true, nil
	}
	return int(values[0]), int(values[1]), false, nil
}

// Repair removes surplus notifications, or adds at most n missing ones. It returns by how much their number changed.
func (s *Store) Repair(ctx context.Context, n int) (change int, err error) {
	reply, err := s.eval(ctx, "repair", []string{s.keys.list, s.keys.noti}, n)
	values, err := ints(reply, err, 3)
	if err != nil {
		return 0, err
	}
	return int(values[2]), nil
}
