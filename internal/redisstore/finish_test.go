package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// working is a queue whose worker w holds batch 3 with tokens 3-1, 3-2 and 3-3, and batch 4 with 4-1.
func working(more redistest.State) redistest.State {
	return with(redistest.State{
		"_worker:w": alive, "_workers": redistest.Set{"w"},
		"_processing:w": redistest.Hash{"3-1": "a", "3-2": "b", "3-3": "c", "4-1": "d"},
		"_claims:w":     redistest.Hash{"3": "1000", "4": "2000"},
	}, more)
}

// left is what w still holds after some ends.
func left(claims, batches string) redistest.State {
	texts := map[string]string{"3-1": "a", "3-2": "b", "3-3": "c", "4-1": "d"}
	times := map[string]string{"3": "1000", "4": "2000"}
	s := redistest.State{"_processing:w": nil, "_claims:w": nil}
	if claims != "" {
		hash := redistest.Hash{}
		for token := range strings.FieldsSeq(claims) {
			hash[token] = texts[token]
		}
		s["_processing:w"] = hash
	}
	if batches != "" {
		hash := redistest.Hash{}
		for batch := range strings.FieldsSeq(batches) {
			hash[batch] = times[batch]
		}
		s["_claims:w"] = hash
	}
	return s
}

// ackWith acknowledges claims that may or may not exist, ackUnder claims that existed under a heartbeat.
func ackWith(batches []uint64, lost int, tokens ...string) func(s *Store) (any, error) {
	return ackUnder("u", batches, lost, tokens...)
}

func ackUnder(pulse string, batches []uint64, lost int, tokens ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		return s.Ack(bg, "w", Ended{Tokens: tokens, Batches: batches, Pulse: pulse}, lost)
	}
}

// manyTokens are the tokens of as many claims as one call may end, all of batch 5.
var manyTokens = func() (list []string) {
	for i := range MaxTokens {
		list = append(list, "5-"+strconv.Itoa(i+1))
	}
	return list
}()

// manyClaims are their messages, those of envelopes.
var manyClaims = func() redistest.Hash {
	hash, list := redistest.Hash{}, messages(MaxTokens)
	for i, token := range manyTokens {
		hash[token] = list[i]
	}
	return hash
}()

// manyHeld is a queue whose worker w holds them.
var manyHeld = redistest.State{
	"_worker:w": alive, "_workers": redistest.Set{"w"}, "_processing:w": manyClaims,
	"_claims:w": redistest.Hash{"5": "1000"},
}

// all returns n times true.
func all(n int) []bool {
	list := make([]bool, n)
	for i := range list {
		list[i] = true
	}
	return list
}

var ackCases = storeTable{script: "ack", cases: []storeCase{
	{
		name:   "some of a batch",
		seed:   working(nil),
		do:     ackWith(nil, 0, "3-1", "3-3"),
		result: all(2),
		want: with(working(left("3-2 4-1", "3 4")),
			redistest.State{testDay: counted(redistest.Hash{"processed": "2"})}),
	},
	{
		name:   "the last of two batches",
		seed:   working(nil),
		do:     ackWith([]uint64{3, 4}, 0, "3-1", "3-2", "3-3", "4-1"),
		result: all(4),
		want:   with(working(left("", "")), redistest.State{testDay: counted(redistest.Hash{"processed": "4"})}),
	},
	{
		name:   "under the same heartbeat",
		seed:   working(nil),
		do:     ackUnder("v", []uint64{4}, 0, "3-1", "4-1"),
		result: []bool(nil),
		want: with(working(left("3-2 3-3", "3")),
			redistest.State{testDay: counted(redistest.Hash{"processed": "2"})}),
	},
	{
		name:   "under the same heartbeat, a second time",
		seed:   working(left("3-2 3-3", "3")),
		do:     ackUnder("v", []uint64{4}, 0, "3-1", "4-1"),
		result: []bool(nil),
	},
	{
		name:   "the heartbeat is gone",
		seed:   working(redistest.State{"_worker:w": nil}),
		do:     ackUnder("v", nil, 0, "3-1", "9-1"),
		result: []bool{true, false},
		want: with(working(left("3-2 3-3 4-1", "3 4")), redistest.State{
			"_worker:w": nil, testDay: counted(redistest.Hash{"processed": "1"}),
		}),
	},
	{
		name:   "stale and unknown tokens",
		seed:   working(nil),
		do:     ackWith(nil, 0, "2-1", "3-2", "3-9", "x", ""),
		result: []bool{false, true, false, false, false},
		want: with(working(left("3-1 3-3 4-1", "3 4")),
			redistest.State{testDay: counted(redistest.Hash{"processed": "1"})}),
	},
	{
		name:   "a token twice: it stands once",
		seed:   working(nil),
		do:     ackWith(nil, 0, "3-1", "3-1"),
		result: []bool{true, false},
		want: with(working(left("3-2 3-3 4-1", "3 4")),
			redistest.State{testDay: counted(redistest.Hash{"processed": "1"})}),
	},
	{
		name:   "none stands: no counters",
		seed:   working(nil),
		do:     ackWith(nil, 0, "2-1"),
		result: []bool{false},
	},
	{
		name:   "only a finished batch",
		seed:   working(left("3-1 3-2 3-3", "3 4")),
		do:     ackWith([]uint64{4, 9}, 0),
		result: []bool{},
		want:   working(left("3-1 3-2 3-3", "3")),
	},
	{
		name: "claims of another worker stay",
		seed: working(redistest.State{
			"_processing:v": redistest.Hash{"3-1": "x"},
			"_claims:v":     redistest.Hash{"3": "1"}, "_workers": redistest.Set{"v", "w"},
		}),
		do:     ackWith([]uint64{3}, 0, "3-1", "3-2", "3-3"),
		result: all(3),
		want: with(working(left("4-1", "4")), redistest.State{
			"_processing:v": redistest.Hash{"3-1": "x"}, "_claims:v": redistest.Hash{"3": "1"},
			"_workers": redistest.Set{"v", "w"},
			testDay:    counted(redistest.Hash{"processed": "3"}),
		}),
	},
	{
		name: "counters of the day exist: added to, and live as long as they did",
		seed: working(redistest.State{testDay: redistest.Expiring{Value: redistest.Hash{
			"processed": "5",
			"failed":    "1",
		}, For: time.Hour}}),
		do:     ackWith(nil, 0, "3-1"),
		result: all(1),
		want: with(working(left("3-2 3-3 4-1", "3 4")), redistest.State{
			testDay: redistest.Expiring{Value: redistest.Hash{"processed": "6", "failed": "1"}, For: time.Hour},
		}),
	},
	{
		name:   "lost claims are counted",
		seed:   working(nil),
		do:     ackWith(nil, 3, "3-1"),
		result: all(1),
		want: with(working(left("3-2 3-3 4-1", "3 4")),
			redistest.State{testDay: counted(redistest.Hash{"processed": "1", "lost": "3"})}),
	},
	{
		name:   "only lost claims",
		do:     ackWith(nil, 2),
		result: []bool{},
		want:   redistest.State{testDay: counted(redistest.Hash{"lost": "2"})},
	},
	{
		name:   "as many as a call may have",
		seed:   manyHeld,
		do:     ackWith([]uint64{5}, 0, manyTokens...),
		result: all(MaxTokens),
		want: redistest.State{
			"_worker:w": alive, "_workers": redistest.Set{"w"},
			testDay: counted(redistest.Hash{"processed": strconv.Itoa(MaxTokens)}),
		},
	},
}}

func releaseWith(batches []uint64, tokens ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Release(bg, "w", batches, tokens, s, true) }
}

// forwardWith releases claims to another queue and adds that queue's pending tasks to the answers.
func forwardWith(batches []uint64, tokens ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		other := NewStore(s.Src, "", s.keys.list+".other")
		if err := other.Enqueue(bg, []Envelope{{Message: []byte("old")}}); err != nil {
			return nil, err
		}
		stood, err := s.Release(bg, "w", batches, tokens, other, false)
		if err != nil {
			return nil, err
		}
		pending, err := redis.Strings(other.do(bg, "LRANGE", other.keys.list, 0, -1))
		if err != nil {
			return nil, err
		}
		noti, err := redis.Int(other.do(bg, "LLEN", other.keys.noti))
		return fmt.Sprint(stood, pending, noti), err
	}
}

var releaseCases = storeTable{script: "release", cases: []storeCase{
	{
		name:   "to the front, in the order of their claim",
		seed:   working(redistest.State{"": redistest.List{"x"}, "_noti": ones(1)}),
		do:     releaseWith(nil, "3-1", "3-2", "4-1"),
		result: all(3),
		want: working(with(left("3-3", "3 4"),
			redistest.State{"": redistest.List{"a", "b", "d", "x"}, "_noti": ones(4)})),
	},
	{
		name:   "everything",
		seed:   working(nil),
		do:     releaseWith([]uint64{3, 4}, "3-1", "3-2", "3-3", "4-1"),
		result: all(4),
		want:   working(with(left("", ""), redistest.State{"": redistest.List{"a", "b", "c", "d"}, "_noti": ones(4)})),
	},
	{
		name:   "stale tokens and one twice",
		seed:   working(nil),
		do:     releaseWith(nil, "2-1", "3-2", "3-2", "x"),
		result: []bool{false, true, false, false},
		want:   working(with(left("3-1 3-3 4-1", "3 4"), redistest.State{"": redistest.List{"b"}, "_noti": ones(1)})),
	},
	{
		name:   "none stands",
		seed:   working(redistest.State{"": redistest.List{"x"}, "_noti": ones(1)}),
		do:     releaseWith(nil, "2-1"),
		result: []bool{false},
	},
	{
		name:   "only a finished batch",
		seed:   working(left("4-1", "3 4")),
		do:     releaseWith([]uint64{3}),
		result: []bool{},
		want:   working(left("4-1", "4")),
	},
	{
		name:   "as many as a call may have",
		seed:   manyHeld,
		do:     releaseWith([]uint64{5}, manyTokens...),
		result: all(MaxTokens),
		want: redistest.State{
			"_worker:w": alive, "_workers": redistest.Set{"w"}, "": messages(MaxTokens),
			"_noti": ones(MaxTokens),
		},
	},
}}

// TestReleaseToAnotherQueue hands tasks on, to the end of a queue in the same slot.
func TestReleaseToAnotherQueue(t *testing.T) {
	to := serverTarget(t, redistest.Shared(t).URL())
	table := &storeTable{script: "release"}
	for _, c := range []storeCase{
		{
			name:   "to the end",
			seed:   working(redistest.State{"": redistest.List{"x"}, "_noti": ones(1)}),
			do:     forwardWith(nil, "3-1", "2-2", "4-1"),
			result: "[true false true] [old a d] 3",
			want:   working(with(left("3-2 3-3", "3 4"), redistest.State{"": redistest.List{"x"}, "_noti": ones(1)})),
		},
		{
			name:   "none stands",
			seed:   working(left("3-1 3-2 3-3", "3 4")),
			do:     forwardWith([]uint64{4}, "9-9"),
			result: "[false] [old] 1",
			want:   working(left("3-1 3-2 3-3", "3")),
		},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, to, table) })
	}
}
