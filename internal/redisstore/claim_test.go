package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
