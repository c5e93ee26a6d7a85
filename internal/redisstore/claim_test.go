package redisstore

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// claimReply is the result of claim in a readable form.
type claimReply struct {
	messages string
	left     int
}

// claimReplyWith is the result of a claim that also ends claims.
type claimReplyWith struct {
	claimReply
	stood []bool
}

// claimed calls claim for worker w, batch 7.
func claimWith(c ClaimCall) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		c := c // tests run side by side
		c.Worker = "w"
		if c.Batch == 0 {
			c.Batch = 7
		}
		got, err := s.Claim(bg, c)
		texts := make([]string, len(got.Messages))
		for i, message := range got.Messages {
			if size, large := message.(int64); large {
				texts[i] = fmt.Sprintf("(%d bytes)", size)
				continue
			}
			m, _ := message.([]byte)
			texts[i] = string(m)
			if len(m) > 20 {
				texts[i] = fmt.Sprintf("%d bytes of %c", len(m), m[0])
			}
		}
		reply := claimReply{strings.Join(texts, " "), got.Left}
		if len(c.Ended.Tokens) > 0 {
			return claimReplyWith{reply, got.Stood}, err
		}
		return reply, err
	}
}

// fullClaim are messages that together have as many bytes as one claim may take.
var fullClaim = strings.Join([]string{
	big("a", wire.WorkerLimits.Bytes/4), big("b", wire.WorkerLimits.Bytes/4),
	big("c", wire.WorkerLimits.Bytes/4), big("d", wire.WorkerLimits.Bytes/4),
}, " ")

// queued is a queue with a live worker w and the given pending tasks and notifications.
func queued(pending string, noti int) redistest.State {
	s := redistest.State{"_worker:w": alive, "_workers": redistest.Set{"w"}}
	if pending != "" {
		s[""] = redistest.List(strings.Fields(pending))
	}
	if noti > 0 {
		s["_noti"] = ones(noti)
	}
	return s
}

// holds adds to queued the claims of batch 7.
func holds(state redistest.State, claimed string) redistest.State {
	hash := redistest.Hash{}
	for i, m := range strings.Fields(claimed) {
		hash["7-"+strconv.Itoa(i+1)] = m
	}
	return with(state, redistest.State{"_processing:w": hash, "_claims:w": redistest.Hash{"7": nowMark}})
}

// big is a message of n bytes.
func big(c string, n int) string { return strings.Repeat(c, n) }

var manyClaimed = func() redistest.Hash {
	hash := redistest.Hash{}
	for i, m := range messages(maxClaim) {
		hash["7-"+strconv.Itoa(i+1)] = m
	}
	return hash
}()

// pausedQueue has the control hash of a paused queue.
var pausedQueue = controlled(redistest.Hash{"paused": "4"})

var claimCases = storeTable{script: "claim", cases: slices.Concat(gapCases, []storeCase{
	// Heartbeat and batch number.
	{
		name: "no heartbeat",
		seed: with(queued("a b", 2), redistest.State{"_worker:w": nil}),
		do:   claimWith(ClaimCall{Most: 5}),
		err:  ErrNoHeartbeat,
	},
	{
		name: "no heartbeat, a notification in hand: given back",
		seed: with(queued("a b", 1), redistest.State{"_worker:w": nil}),
		do:   claimWith(ClaimCall{Most: 5, Held: 1}),
		err:  ErrNoHeartbeat,
		want: with(queued("a b", 2), redistest.State{"_worker:w": nil}),
	},
	{
		name: "no heartbeat, a notification in hand, nothing pending: dropped",
		seed: with(queued("", 3), redistest.State{"_worker:w": nil}),
		do:   claimWith(ClaimCall{Most: 5, Held: 1}),
		err:  ErrNoHeartbeat,
		want: with(queued("", 0), redistest.State{"_worker:w": nil}),
	},
	{
		name: "no heartbeat on a legacy queue: given back",
		seed: with(queued("a b", 1), redistest.State{"_worker:w": nil}),
		do:   claimWith(ClaimCall{Most: 5, Held: 1, Legacy: true}),
		err:  ErrNoHeartbeat,
		want: with(queued("a b", 2), redistest.State{"_worker:w": nil}),
	},
	{
		name: "used batch number",
		seed: with(queued("a b", 2),
			redistest.State{"_processing:w": redistest.Hash{"7-1": "x"}, "_claims:w": redistest.Hash{"7": "5"}}),
		do:  claimWith(ClaimCall{Most: 5}),
		err: ErrBatchUsed,
	},
	{
		name: "used batch number, a notification in hand: given back",
		seed: with(queued("a b", 1),
			redistest.State{"_processing:w": redistest.Hash{"7-1": "x"}, "_claims:w": redistest.Hash{"7": "5"}}),
		do:  claimWith(ClaimCall{Most: 5, Held: 1}),
		err: ErrBatchUsed,
		want: with(queued("a b", 2),
			redistest.State{"_processing:w": redistest.Hash{"7-1": "x"}, "_claims:w": redistest.Hash{"7": "5"}}),
	},
	// The control hash.
	{
		name: "paused",
		seed: with(queued("a b", 2), pausedQueue),
		do:   claimWith(ClaimCall{Most: 5}),
		err:  ErrQueuePaused,
	},
	{
		name: "paused, a notification in hand: given back",
		seed: with(queued("a b", 1), pausedQueue),
		do:   claimWith(ClaimCall{Most: 5, Held: 1}),
		err:  ErrQueuePaused,
		want: with(queued("a b", 2), pausedQueue),
	},
	{
		name: "paused, on a legacy queue: given back",
		seed: with(queued("a b", 1), pausedQueue),
		do:   claimWith(ClaimCall{Most: 5, Held: 1, Legacy: true}),
		err:  ErrQueuePaused,
		want: with(queued("a b", 2), pausedQueue),
	},
	{
		name: "paused, and what is done ends",
		seed: working(with(pausedQueue, redistest.State{"": redistest.List{"x"}, "_noti": ones(1)})),
		do:   claimWith(ClaimCall{Most: 5, Ended: Ended{Pulse: "v", Tokens: []string{"4-1"}, Batches: []uint64{4}}}),
		err:  ErrQueuePaused,
		want: working(with(left("3-1 3-2 3-3", "3"), with(pausedQueue, redistest.State{
			"": redistest.List{"x"}, "_noti": ones(1), testDay: counted(redistest.Hash{"processed": "1"}),
		}))),
	},
	{
		name: "paused, and without heartbeat",
		seed: with(queued("a b", 2), with(pausedQueue, redistest.State{"_worker:w": nil})),
		do:   claimWith(ClaimCall{Most: 5}),
		err:  ErrNoHeartbeat,
	},
	{
		name: "with a version",
		seed: with(queued("a b", 2), controlled(nil)),
		do: func(s *Store) (any, error) {
			got, err := s.Claim(bg, ClaimCall{Worker: "w", Batch: 7, Most: 5})
			return fmt.Sprintf("%s %d %d", got.Messages, got.Left, got.Version), err
		},
		result: "[a b] 0 5",
		want:   holds(with(queued("", 0), controlled(nil)), "a b"),
	},
	{
		name: "with a version, of an empty queue",
		seed: with(queued("", 0), controlled(nil)),
		do: func(s *Store) (any, error) {
			got, err := s.Claim(bg, ClaimCall{Worker: "w", Batch: 7, Most: 5})
			return fmt.Sprintf("%s %d %d", got.Messages, got.Left, got.Version), err
		},
		result: "[] 0 5",
	},

	{
		name: "beside an older batch and another worker",
		seed: with(queued("a", 1), redistest.State{
			"_processing:w": redistest.Hash{"6-1": "x"},
			"_claims:w":     redistest.Hash{"6": "5"}, "_processing:v": redistest.Hash{"7-1": "y"},
		}),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"a", 0},
		want: with(queued("", 0), redistest.State{
			"_processing:w": redistest.Hash{"6-1": "x", "7-1": "a"},
			"_claims:w":     redistest.Hash{"6": "5", "7": nowMark}, "_processing:v": redistest.Hash{"7-1": "y"},
		}),
	},
	{
		name: "token of a batch number that only begins alike",
		seed: with(queued("a", 1),
			redistest.State{"_processing:w": redistest.Hash{"77-1": "x"}, "_claims:w": redistest.Hash{"77": "5"}}),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"a", 0},
		want: with(queued("", 0), redistest.State{
			"_processing:w": redistest.Hash{"77-1": "x", "7-1": "a"},
			"_claims:w":     redistest.Hash{"77": "5", "7": nowMark},
		}),
	},
	// Number of tasks.
	{
		name:   "all there is",
		seed:   queued("a b c", 3),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"a b c", 0},
		want:   holds(queued("", 0), "a b c"),
	},
	{
		name:   "as many as asked for",
		seed:   queued("a b c", 3),
		do:     claimWith(ClaimCall{Most: 2}),
		result: claimReply{"a b", 1},
		want:   holds(queued("c", 1), "a b"),
	},
	{
		name:   "as many as a call may take",
		seed:   redistest.State{"": append(messages(maxClaim), "x"), "_noti": ones(maxClaim + 1), "_worker:w": alive},
		do:     claimWithCount(maxClaim + 5),
		result: maxClaim,
		want: redistest.State{
			"": redistest.List{"x"}, "_noti": ones(1), "_worker:w": alive, "_processing:w": manyClaimed,
			"_claims:w": redistest.Hash{"7": nowMark},
		},
	},
	{
		name:   "a batch number beyond 2^53",
		seed:   queued("a", 1),
		do:     claimWith(ClaimCall{Batch: 1<<64 - 1, Most: 1}),
		result: claimReply{"a", 0},
		want: with(queued("", 0), redistest.State{
			"_processing:w": redistest.Hash{"18446744073709551615-1": "a"},
			"_claims:w":     redistest.Hash{"18446744073709551615": nowMark},
		}),
	},
	{
		name:   "bytes: as large as a message may be",
		seed:   queued(big("a", wire.WorkerLimits.Bytes)+" b", 2),
		do:     claimWith(ClaimCall{Most: 1}),
		result: claimReply{"1052672 bytes of a", 1},
		want:   holds(queued("b", 1), big("a", wire.WorkerLimits.Bytes)),
	},
	{
		name:   "bytes: too large to be read, behind another one",
		seed:   queued("a "+big("b", wire.WorkerLimits.Bytes+1)+" c", 3),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"a", 2},
		want:   holds(queued(big("b", wire.WorkerLimits.Bytes+1)+" c", 2), "a"),
	},
	{
		name:   "bytes: too large to be read, in front",
		seed:   queued(big("b", wire.WorkerLimits.Bytes+1)+" c", 2),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"(1052673 bytes)", 1},
		want:   holds(queued("c", 1), big("b", wire.WorkerLimits.Bytes+1)),
	},
	{
		name:   "bytes: larger than a whole claim, alone",
		seed:   queued(big("a", 5*wire.WorkerLimits.Bytes)+" b", 2),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"(5263360 bytes)", 1},
		want:   holds(queued("b", 1), big("a", 5*wire.WorkerLimits.Bytes)),
	},
	{
		name:   "bytes: as many as one claim may take",
		seed:   queued(fullClaim+" c", 5),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"263168 bytes of a 263168 bytes of b 263168 bytes of c 263168 bytes of d", 1},
		want:   holds(queued("c", 1), fullClaim),
	},
	{
		name:   "bytes: the rest goes back in its old order",
		seed:   queued(fullClaim+" "+big("b", 2)+" c d e", 8),
		do:     claimWith(ClaimCall{Most: 7}),
		result: claimReply{"263168 bytes of a 263168 bytes of b 263168 bytes of c 263168 bytes of d", 4},
		want:   holds(queued(big("b", 2)+" c d e", 4), fullClaim),
	},
	{
		name:   "nothing pending",
		seed:   queued("", 0),
		do:     claimWith(ClaimCall{Most: 5}),
		result: claimReply{"", 0},
	},
	// Notifications.
	{
		name:   "one in hand: one less is taken from the list",
		seed:   queued("a b c", 2),
		do:     claimWith(ClaimCall{Most: 2, Held: 1}),
		result: claimReply{"a b", 1},
		want:   holds(queued("c", 1), "a b"),
	},
	{
		name:   "one in hand, more of both left",
		seed:   queued("a b c d e", 4),
		do:     claimWith(ClaimCall{Most: 2, Held: 1}),
		result: claimReply{"a b", 3},
		want:   holds(queued("c d e", 3), "a b"),
	},
	{
		name:   "one in hand for the only task",
		seed:   queued("a", 0),
		do:     claimWith(ClaimCall{Most: 5, Held: 1}),
		result: claimReply{"a", 0},
		want:   holds(queued("", 0), "a"),
	},
	{
		name:   "one in hand, nothing pending: surplus is dropped",
		seed:   queued("", 3),
		do:     claimWith(ClaimCall{Most: 5, Held: 1}),
		result: claimReply{"", 0},
		want:   queued("", 0),
	},
	{
		name:   "none asked for: the one in hand goes back",
		seed:   queued("a", 0),
		do:     claimWith(ClaimCall{Most: 0, Held: 1}),
		result: claimReply{"", 1},
		want:   queued("a", 1),
	},
	{
		name:   "none asked for: the one in hand goes back to others",
		seed:   queued("a b c d", 3),
		do:     claimWith(ClaimCall{Most: 0, Held: 1}),
		result: claimReply{"", 4},
		want:   queued("a b c d", 4),
	},
	{
		name:   "none asked for, none missing",
		seed:   queued("a b", 2),
		do:     claimWith(ClaimCall{Most: 0}),
		result: claimReply{"", 2},
	},
	{
		name:   "all missing: one is added, so that the next worker wakes",
		seed:   queued("a b c", 0),
		do:     claimWith(ClaimCall{Most: 1}),
		result: claimReply{"a", 2},
		want:   holds(queued("b c", 1), "a"),
	},
	{
		name:   "all missing, none claimed: one is added",
		seed:   queued("a b c", 0),
		do:     claimWith(ClaimCall{Most: 0}),
		result: claimReply{"", 3},
		want:   queued("a b c", 1),
	},
	{
		name:   "some missing: claimed ones are counted out, one is left",
		seed:   queued("a b c", 1),
		do:     claimWith(ClaimCall{Most: 2}),
		result: claimReply{"a b", 1},
		want:   holds(queued("c", 1), "a b"),
	},
	{
		name:   "surplus beside tasks stays for the sweeper",
		seed:   queued("a b", 9),
		do:     claimWith(ClaimCall{Most: 1}),
		result: claimReply{"a", 1},
		want:   holds(queued("b", 8), "a"),
	},
	{
		name:   "surplus is dropped with the last task",
		seed:   queued("a b", 9),
		do:     claimWith(ClaimCall{Most: 2}),
		result: claimReply{"a b", 0},
		want:   holds(queued("", 0), "a b"),
	},
	// Legacy workers.
	{
		name:   "legacy: no more than have notifications",
		seed:   queued("a b c", 1),
		do:     claimWith(ClaimCall{Most: 5, Held: 1, Legacy: true}),
		result: claimReply{"a b", 1},
		want:   holds(queued("c", 0), "a b"),
	},
	{
		name:   "legacy: none without notifications, and none added",
		seed:   queued("a b c", 0),
		do:     claimWith(ClaimCall{Most: 5, Legacy: true}),
		result: claimReply{"", 3},
	},
	{
		name:   "legacy: only the one in hand",
		seed:   queued("a b c", 0),
		do:     claimWith(ClaimCall{Most: 5, Held: 1, Legacy: true}),
		result: claimReply{"a", 2},
		want:   holds(queued("b c", 0), "a"),
	},
	{
		name:   "legacy: as many as asked for",
		seed:   queued("a b c", 3),
		do:     claimWith(ClaimCall{Most: 2, Legacy: true}),
		result: claimReply{"a b", 1},
		want:   holds(queued("c", 1), "a b"),
	},
	{
		name:   "legacy: surplus stays, as a legacy worker may be about to claim",
		seed:   queued("a", 3),
		do:     claimWith(ClaimCall{Most: 5, Legacy: true}),
		result: claimReply{"a", 0},
		want:   holds(queued("", 2), "a"),
	},
	{
		name:   "legacy: nothing pending, surplus stays",
		seed:   queued("", 2),
		do:     claimWith(ClaimCall{Most: 5, Held: 1, Legacy: true}),
		result: claimReply{"", 0},
	},
	{
		name:   "legacy, mending: surplus is dropped when nothing is pending",
		seed:   queued("", 2),
		do:     claimWith(ClaimCall{Most: 5, Legacy: true, Mend: true}),
		result: claimReply{"", 0},
		want:   queued("", 0),
	},
	{
		name:   "legacy, mending: one is added when all are missing",
		seed:   queued("a b", 0),
		do:     claimWith(ClaimCall{Most: 5, Legacy: true, Mend: true}),
		result: claimReply{"", 2},
		want:   queued("a b", 1),
	},
	{
		name:   "legacy, mending: one in hand goes back",
		seed:   queued("a b", 0),
		do:     claimWith(ClaimCall{Most: 0, Held: 1, Legacy: true, Mend: true}),
		result: claimReply{"", 2},
		want:   queued("a b", 1),
	},
	{
		name: "with acknowledgements, under the same heartbeat",
		seed: working(redistest.State{"": redistest.List{"x", "y"}, "_noti": ones(2)}),
		do: claimWith(ClaimCall{Most: 1, Ended: Ended{
			Pulse: "v", Tokens: []string{"3-1", "3-2", "3-3"}, Batches: []uint64{3},
		}}),
		result: claimReplyWith{claimReply{"x", 1}, nil},
		want: working(redistest.State{
			"": redistest.List{"y"}, "_noti": ones(1), testDay: counted(redistest.Hash{"processed": "3"}),
			"_processing:w": redistest.Hash{"4-1": "d", "7-1": "x"},
			"_claims:w":     redistest.Hash{"4": "2000", "7": nowMark},
		}),
	},
	{
		name: "with acknowledgements, under another heartbeat: each is looked at",
		seed: working(redistest.State{"": redistest.List{"x"}, "_noti": ones(1)}),
		do: claimWith(ClaimCall{Most: 1, Ended: Ended{
			Pulse: "u", Tokens: []string{"2-9", "3-1", "3-1", "3-3"}, Batches: nil,
		}}),
		result: claimReplyWith{claimReply{"x", 0}, []bool{false, true, false, true}},
		want: working(redistest.State{
			testDay:         counted(redistest.Hash{"processed": "2"}),
			"_processing:w": redistest.Hash{"3-2": "b", "4-1": "d", "7-1": "x"},
			"_claims:w":     redistest.Hash{"3": "1000", "4": "2000", "7": nowMark},
		}),
	},
	{
		name: "with acknowledgements, without a heartbeat: they need none",
		seed: working(redistest.State{"_worker:w": nil, "": redistest.List{"x"}, "_noti": ones(1)}),
		do: claimWith(ClaimCall{Most: 1, Ended: Ended{
			Pulse: "v", Tokens: []string{"4-1", "4-2"}, Batches: []uint64{4},
		}}),
		err: ErrNoHeartbeat,
		want: working(redistest.State{
			"_worker:w": nil, "": redistest.List{"x"}, "_noti": ones(1),
			testDay:         counted(redistest.Hash{"processed": "1"}),
			"_processing:w": redistest.Hash{"3-1": "a", "3-2": "b", "3-3": "c"},
			"_claims:w":     redistest.Hash{"3": "1000"},
		}),
	},
})}

// claimWithCount claims n tasks and returns how many came.
func claimWithCount(n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		got, err := s.Claim(bg, ClaimCall{Worker: "w", Batch: 7, Most: n})
		return len(got.Messages), err
	}
}

// Redis searches a hash of few short fields from the start for each of them. So the hash of a large claim becomes a
// table, however small its messages are, and the field that made it one does not remain.
func TestLargeClaimMakesATable(t *testing.T) {
	for _, tt := range []struct {
		n    int
		want []string // encodings; Redis 6.2 calls the compact one ziplist
	}{{5, []string{"listpack", "ziplist"}}, {64, []string{"hashtable"}}, {200, []string{"hashtable"}}} {
		t.Run(strconv.Itoa(tt.n), func(t *testing.T) {
			b := redistest.NewBench(t, redistest.Shared(t))
			s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
			b.Do("SET", b.Name+"_worker:w", "v")
			for i := range tt.n {
				b.Do("RPUSH", b.Name, fmt.Sprint("m", i+1))
			}
			got, err := s.Claim(bg, ClaimCall{Worker: "w", Batch: 7, Most: tt.n})
			if err != nil || len(got.Messages) != tt.n {
				t.Fatalf("%d messages, %v", len(got.Messages), err)
			}
			held := b.Hash("_processing:w")
			for i := range tt.n {
				if token, want := fmt.Sprint("7-", i+1), fmt.Sprint("m", i+1); held[token] != want ||
					fmt.Sprintf("%s", got.Messages[i]) != want {
					t.Errorf("%s is %q in Redis and %q here, expected %q", token, held[token], got.Messages[i], want)
				}
			}
			if len(held) != tt.n {
				t.Errorf("%d fields, expected %d", len(held), tt.n)
			}
			if encoding, _ := redis.String(b.Do("OBJECT", "ENCODING", b.Name+"_processing:w"),
				nil); !slices.Contains(tt.want, encoding) {
				t.Errorf("encoding %q, expected one of %q", encoding, tt.want)
			}
		})
	}
}

// claimsPage reads claims: all of them if there are at most n, else some n.
func claimsPage(s *Store, from ClaimHash, n int) (page []Claimed, total int, err error) {
	tokens, total, err := s.ClaimTokens(bg, from, n)
	for len(tokens) > 0 && err == nil {
		var some []Claimed
		var read int
		some, read, err = s.Claims(bg, from, tokens)
		page, tokens = append(page, some...), tokens[read:]
	}
	return page, total, err
}

// TestClaimsPage reads claims page by page until none is left, also from hashes that are too large for Redis's compact
// form.
func TestClaimsPage(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn := server.Dial(t)
	redistest.Seed(t, conn, name, manyHeld)
	s := NewStore(dialled(t, server.URL()), "", name)
	hash := s.keys.processing + "w"
	for left := maps.Clone(manyClaims); len(left) > 0; {
		page, total, err := claimsPage(s, s.ClaimsOf("w"), 200)
		if err != nil || total != len(left) || len(page) != min(200, total) {
			t.Fatalf("expected %d of %d claims, found %d of %d, %v", min(200, len(left)), len(left), len(page), total,
				err)
		}
		for _, c := range page {
			if message, ok := left[c.Token]; !ok || message != string(c.Message) {
				t.Errorf("claim %s: expected %q, found %q", c.Token, message, c.Message)
			}
			delete(left, c.Token)
			server.Do(t, "HDEL", hash, c.Token)
		}
	}
	if page, total, err := claimsPage(s, s.ClaimsOf("w"), 200); err != nil || total != 0 || len(page) > 0 {
		t.Errorf("no claims: found %d of %d, %v", len(page), total, err)
	}
}

func bigMessage(i int) Envelope {
	msg := wire.Message{
		Kind: wire.GoExtended, Path: "a.b",
		Payload: wire.AppendBin(nil, bytes.Repeat([]byte{'x'}, 1<<20-200)), Meta: wire.Meta{ID: fmt.Sprint(i)},
	}
	return Envelope{ID: msg.Meta.ID, Message: msg.Append(nil)}
}

// largest is how many messages of a megabyte one script may move.
const largest = MaxCallBytes>>20 + 1

// sizedStore returns a store on a server of its own, so that a test can count commands.
func sizedStore(t *testing.T) (*redistest.Bench, *Store) {
	t.Helper()
	b := redistest.NewBench(t, redistest.Start(t))
	return b, NewStore(dialled(t, b.Server.URL()), "", b.Name)
}

func TestClaimTakesNoMoreThanItsBytes(t *testing.T) {
	t.Parallel()
	b, s := sizedStore(t)
	for i := range 100 {
		if err := s.Enqueue(t.Context(), []Envelope{bigMessage(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Register(t.Context(), "w", time.Minute, ""); err != nil {
		t.Fatal(err)
	}
	before := b.Server.CommandStats(t)
	got, err := s.Claim(t.Context(), ClaimCall{Worker: "w", Batch: 1, Most: 1000})
	if err != nil {
		t.Fatal(err)
	}
	m, left := got.Messages, got.Left
	if len(m) > largest || left != 100-len(m) {
		t.Errorf("claimed %d messages of a megabyte, %d are left", len(m), left)
	}
	if n := b.Server.CommandStats(t).Since(before)["lpush"]; n > 16 {
		t.Errorf("%d messages were taken and put back", n)
	}
}

func TestTokensOfABatch(t *testing.T) {
	for _, number := range []uint64{0, 1, 9, 10, math.MaxUint64} {
		for _, n := range []int{0, 1, 9, 10, 11, 99, 100, maxClaim} {
			var want []string
			for i := range n {
				want = append(want, fmt.Sprintf("%d-%d", number, i+1))
			}
			got := slices.Collect(TokensOf(number, n))
			if !slices.Equal(got, want) {
				t.Fatalf("%d tokens of batch %d:\n%q\nexpected\n%q", n, number, got, want)
			}
			for i, token := range got {
				if parsed, place, ok := ParseToken(token); !ok || parsed != number || place != i+1 {
					t.Fatalf("%q is claim %d of batch %d, %v: expected %d of %d", token, place, parsed, ok, i+1, number)
				}
			}
		}
	}
}

func TestParseTokenOfOthers(t *testing.T) {
	for _, token := range []string{
		"", "-", "7", "7-", "-1", "7-1-1", "7:1", "x-1", "7-x", "-7-1", "7.0-1", " 7-1",
		"18446744073709551616-1",
	} {
		if number, place, ok := ParseToken(token); ok {
			t.Errorf("%q is claim %d of batch %d, expected no token", token, place, number)
		}
	}
}

// TestTokens reads the tokens of a worker's claims.
func TestTokens(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	redistest.Seed(t, server.Dial(t), name, working(nil))
	s := NewStore(dialled(t, server.URL()), "", name)
	tokens, err := s.Tokens(bg, "w")
	slices.Sort(tokens)
	if want := []string{"3-1", "3-2", "3-3", "4-1"}; err != nil || !slices.Equal(tokens, want) {
		t.Errorf("expected %q, found %q, %v", want, tokens, err)
	}
	if tokens, err := s.Tokens(bg, "v"); err != nil || len(tokens) > 0 {
		t.Errorf("of an unknown worker: found %q, %v", tokens, err)
	}
}

func markWith(note, value string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return nil, s.Mark(bg, "w", note, value) }
}

var markCases = storeTable{script: "mark", cases: []storeCase{
	{
		name: "noted",
		seed: redistest.State{"_claims:w": redistest.Hash{"3": "1"}},
		do:   markWith(MarkAlone, "3-1"),
		want: redistest.State{"_claims:w": redistest.Hash{"3": "1", "alone": "3-1"}},
	},
	{
		name: "noted anew",
		seed: redistest.State{"_claims:w": redistest.Hash{"4": "1", "alone": "3-1"}},
		do:   markWith(MarkAlone, "4-1"),
		want: redistest.State{"_claims:w": redistest.Hash{"4": "1", "alone": "4-1"}},
	},
	{
		name: "taken back",
		seed: redistest.State{"_claims:w": redistest.Hash{"3": "1", "alone": "3-1", "stopped": "1"}},
		do:   markWith(MarkAlone, ""),
		want: redistest.State{"_claims:w": redistest.Hash{"3": "1", "stopped": "1"}},
	},
	{
		name: "of a worker without claims, which may have gone", // the note would stay for ever
		do:   markWith(MarkStopped, "1"),
		want: redistest.State{},
	},
	{
		name: "without claims, noted before",
		seed: redistest.State{"_claims:w": redistest.Hash{"alone": "3-1"}},
		do:   markWith(MarkStopped, "1"),
		want: redistest.State{"_claims:w": redistest.Hash{"alone": "3-1"}},
	},
}}
