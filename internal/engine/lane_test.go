package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// heldLane is a lane on a real server. Its calls are held, so that the test decides when each is answered.
type heldLane struct {
	*bench
	*lane.Lane
	src *faultnet.HoldSource
}

func newHeldLane(t *testing.T) *heldLane {
	t.Helper()
	b := newBench(t)
	for _, sc := range []*redisstore.Script{redisstore.Scripts["claim"], redisstore.Scripts["ack"]} {
		b.Do("SCRIPT", "LOAD", sc.Source)
	}
	h := &heldLane{bench: b, src: &faultnet.HoldSource{Source: b.rdb.loops, Calls: make(chan *faultnet.HeldCall)}}
	h.Lane = lane.New(redisstore.NewStore(h.src, "", b.Name), "w", false)
	finish.New(h.Lane, exec.New(1, 0, time.Minute, nil),
		&finish.Decider{Events: &events.Listeners{}, Log: loop.NewJournal(b.log.logger())})
	h.registered("v")
	return h
}

// registered registers the worker by another connection, as its heartbeat does.
func (h *heldLane) registered(value string) {
	h.T.Helper()
	if _, err := h.q.store.Register(bg, "w", quietLife, value); err != nil {
		h.T.Fatal(err)
	}
	h.Pulse.Store(&value)
}

// pend puts tasks into the queue. Their messages are letters.
func (h *heldLane) pend(messages string) {
	h.T.Helper()
	for m := range strings.FieldsSeq(messages) {
		h.Do("RPUSH", h.Name, m)
	}
}

// laneClaim is the result of a call.
type laneClaim struct {
	claims []*lane.Claim
	left   int
	err    error
}

// begin starts a claim of n tasks and returns once its call is under way.
func (h *heldLane) begin(n int, done ...*lane.Claim) (call *faultnet.HeldCall, result chan laneClaim) {
	h.T.Helper()
	result = make(chan laneClaim, 1)
	go func() {
		var got laneClaim
		got.claims, got.left, got.err = h.Claim(bg, redisstore.ClaimCall{Most: n}, done)
		result <- got
	}()
	return await(h.bench, "a call", h.src.Calls), result
}

// claim claims n tasks.
func (h *heldLane) claim(n int, done ...*lane.Claim) []*lane.Claim {
	h.T.Helper()
	call, result := h.begin(n, done...)
	call.OK()
	got := await(h.bench, "the answer", result)
	if got.err != nil {
		h.T.Fatal(got.err)
	}
	return got.claims
}

// fail answers a call with an error that does not say whether it ran.
func (h *heldLane) fail(call *faultnet.HeldCall, result chan laneClaim) {
	h.T.Helper()
	call.Answer <- io.ErrUnexpectedEOF
	if got := await(h.bench, "the error", result); !errors.Is(got.err, redisstore.ErrUnknown) || len(got.claims) > 0 {
		h.T.Fatalf("%d claims, %v, expected ErrUnknown", len(got.claims), got.err)
	}
}

// tokens lists those of claims, in order.
func tokens(claims []*lane.Claim) string {
	var list []string
	for _, c := range claims {
		list = append(list, c.Token)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// expect checks which claims the lane knows, and which Redis has.
func (h *heldLane) expect(what, known, inRedis string) {
	h.T.Helper()
	open := h.OpenClaims()
	counted, _, _ := h.Count()
	if got := tokens(open); got != known || counted != len(open) {
		h.T.Errorf("%s: the lane knows %q and counts %d, expected %q", what, got, counted, known)
	}
	held, err := redis.Strings(h.Do("HKEYS", h.Name+"_processing:w"), nil)
	if err != nil {
		h.T.Fatal(err)
	}
	slices.Sort(held)
	if got := strings.Join(held, " "); got != inRedis {
		h.T.Errorf("%s: Redis has %q, expected %q", what, got, inRedis)
	}
}

// batchTimes lists the batches whose claim time Redis has.
func (h *heldLane) batchTimes() string {
	h.T.Helper()
	batches, err := redis.Strings(h.Do("HKEYS", h.Name+"_claims:w"), nil)
	if err != nil {
		h.T.Fatal(err)
	}
	slices.Sort(batches)
	return strings.Join(batches, " ")
}

func TestClaimBesideARegistration(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		before, during, after int // how often a registration begins or is over
		used                  bool
	}{
		{"none", 0, 0, 0, true},
		{"over before the claim", 2, 0, 0, true},
		{"after the claim", 2, 0, 2, true},
		{"begins during the claim", 0, 1, 1, false},
		{"is over during the claim", 1, 1, 0, false},
		{"from before to after the claim", 1, 0, 1, false},
		{"begins and is over during the claim", 2, 2, 0, false},
		{"two of them during the claim", 0, 4, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHeldLane(t)
			times := func(n int) {
				for range n {
					h.NextEpoch()
				}
			}
			h.pend("a b c")
			times(tt.before)
			call, result := h.begin(2)
			times(tt.during)
			call.OK()
			got := await(h.bench, "the claim", result)
			times(tt.after)
			if got.err != nil || got.left != 1 {
				t.Fatalf("%d left, %v", got.left, got.err)
			}
			if tt.used {
				if len(got.claims) != 2 || len(h.Beat) != 0 {
					t.Errorf("%d claims and %d heartbeats, expected 2 and none", len(got.claims), len(h.Beat))
				}
				h.expect("after it", "1-1 1-2", "1-1 1-2")
				return
			}
			_, _, unclear := h.Count()
			if len(got.claims) != 0 || len(h.Beat) != 1 || !unclear {
				t.Errorf("%d claims, %d heartbeats, unclear %v: expected a heartbeat to find out", len(got.claims),
					len(h.Beat), unclear)
			}
			h.expect("after it", "", "1-1 1-2")
			if got := h.UnknownTokens([]string{"1-1", "1-2"}, h.Newest()); len(got) != 2 {
				t.Errorf("strangers %q, expected both", got)
			}
		})
	}
}

func TestTwoClaimsUnderWay(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b c d e")
	if n := h.Newest(); n != 0 {
		t.Errorf("newest %d before the first claim", n)
	}
	firstCall, first := h.begin(2)
	secondCall, second := h.begin(2)
	if _, calling, _ := h.Count(); !calling || h.Newest() != 0 {
		t.Errorf("two calls under way: calling %v, newest %d", calling, h.Newest())
	}
	// Redis executes and answers the later one first.
	secondCall.OK()
	got := await(h.bench, "the second claim", second)
	if tokens(got.claims) != "2-1 2-2" || got.left != 3 || string(got.claims[0].Raw) != "a" {
		t.Fatalf("the second claim brought %s, %d left, %v", tokens(got.claims), got.left, got.err)
	}
	h.expect("one is under way", "2-1 2-2", "2-1 2-2")
	if _, calling, unclear := h.Count(); !calling || unclear || h.Newest() != 0 {
		t.Errorf("one is under way: calling %v, unclear %v, newest %d", calling, unclear, h.Newest())
	}
	all := []string{"1-1", "1-2", "2-0", "2-1", "2-2", "2-3", "3-1", "x"}
	if got := h.UnknownTokens(all, h.Newest()); len(got) > 0 {
		t.Errorf("strangers %q while the first call is under way", got)
	}
	firstCall.OK()
	got1 := await(h.bench, "the first claim", first)
	h.expect("both are over", "1-1 1-2 2-1 2-2", "1-1 1-2 2-1 2-2")
	if _, calling, unclear := h.Count(); calling || unclear || h.Newest() != 2 {
		t.Errorf("both are over: calling %v, unclear %v, newest %d", calling, unclear, h.Newest())
	}
	if got := h.UnknownTokens(all, h.Newest()); !slices.Equal(got, []string{"2-0", "2-3"}) {
		t.Errorf("strangers %q, expected those of no claim", got)
	}
	h.Settle(got.claims[0])
	h.Settle(got.claims[0], got1.claims[1])
	h.expect("two are settled", "1-1 2-2", "1-1 1-2 2-1 2-2")
	if got := h.UnknownTokens(all, h.Newest()); !slices.Equal(got, []string{"1-2", "2-0", "2-1", "2-3"}) {
		t.Errorf("strangers %q, expected those of no claim and of settled ones", got)
	}
	h.Settle(got1.claims...)
	if len(h.Batches) != 1 {
		t.Errorf("%d batches are open, expected one", len(h.Batches))
	}
	h.Settle(got.claims...)
	if len(h.Batches) != 0 || h.OpenCount != 0 {
		t.Errorf("%d batches and %d claims are open, expected none", len(h.Batches), h.OpenCount)
	}
}

// The reply of the first of two claim calls is lost. The worker finds the tokens of that call, and does not treat those
// of the second as unknown.
func TestReplyOfOneOfTwoClaimsIsLost(t *testing.T) {
	for _, order := range []string{"the lost one first", "the lost one last"} {
		t.Run(order, func(t *testing.T) {
			h := newHeldLane(t)
			h.pend("a b c d")
			lostCall, lost := h.begin(2)
			otherCall, other := h.begin(2)
			if order == "the lost one first" {
				h.fail(lostCall, lost)
				if n := h.Newest(); n != 1 {
					t.Errorf("newest %d while the second call is under way", n)
				}
				otherCall.OK()
			} else {
				otherCall.OK()
				h.Until("the second claim is over", func() bool { known, _, _ := h.Count(); return known == 2 })
				h.fail(lostCall, lost)
			}
			if got := await(h.bench, "the other claim", other); tokens(got.claims) != "2-1 2-2" {
				t.Errorf("claims %q, %v", tokens(got.claims), got.err)
			}
			_, calling, unclear := h.Count()
			if calling || !unclear || h.Newest() != 2 {
				t.Errorf("calling %v, unclear %v, newest %d", calling, unclear, h.Newest())
			}
			if got := h.UnknownTokens([]string{"1-1", "1-2", "2-1", "2-2"}, h.Newest()); !slices.Equal(got,
				[]string{"1-1", "1-2"}) {
				t.Errorf("strangers %q, expected those of the claim whose reply was lost", got)
			}
		})
	}
}

// After a claim call that has not run for certain, no reply counts as lost.
func TestClaimThatWasNeverSent(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a")
	first := h.claim(1)
	h.src.OnDialed = func(context.Context) error { return io.EOF }
	_, _, err := h.Claim(bg, redisstore.ClaimCall{Most: 1}, slices.Clone(first))
	_, calling, unclear := h.Count()
	if err == nil || redisstore.MayHaveRun(err) || calling || unclear || h.Newest() != 2 {
		t.Errorf("%v: calling %v, unclear %v, newest %d", err, calling, unclear, h.Newest())
	}
	if first[0].MaybeEnded || len(doneOn(h.Lane)) != 1 || first[0].Batch.Unsent != 1 {
		t.Errorf("what was to ride on it: unclear %v, %d to be sent, %d of its batch", first[0].MaybeEnded,
			len(doneOn(h.Lane)),
			first[0].Batch.Unsent)
	}
	h.expect("after it", "1-1", "1-1")
}

// Redis deletes the claim time of a batch with the last of its claims, also when a call had no answer.
func TestBatchesEndWithTheirLastClaim(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b c d e")
	one, two := h.claim(3), h.claim(2)
	ended := func(what, want string, claims ...*lane.Claim) []*lane.Claim {
		t.Helper()
		kept, e := h.PrepareAcks(slices.Clone(claims))
		if got := fmt.Sprintf("%v %v %s", e.Tokens, e.Batches, e.Pulse); got != want {
			t.Errorf("%s: %s ends, expected %s", what, got, want)
		}
		return kept
	}
	ended("some of two batches", "[1-1 2-1] [] v", one[0], two[0])
	last := ended("the last of both", "[1-3 1-2 2-2] [1 2] v", one[2], one[1], two[1])
	h.NoteUnsent(last)
	ended("one of them again", "[1-2] [] v", one[1])
	ended("the others again", "[2-2 1-3] [2 1] v", two[1], one[2])
	if kept, e := h.PrepareAcks(nil); kept != nil || e.Tokens != nil || e.Batches != nil || e.Pulse != "" {
		t.Errorf("nothing ends: %v", e)
	}
}

func TestAcknowledgementsOfAClaimWithoutAnswer(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b c d")
	one := h.claim(2)
	call, result := h.begin(1, one...)
	h.fail(call, result)
	if !signalled(finisherOf(h.Lane).Wakes) {
		t.Error("the finisher is not woken to try again")
	}
	if !slices.Equal(doneOn(h.Lane), one) || !one[0].MaybeEnded || !one[1].MaybeEnded {
		t.Errorf("%q are to be sent again, expected both", tokens(doneOn(h.Lane)))
	}
	h.expect("nobody knows", "1-1 1-2", "1-1 1-2")
	// The next claim acknowledges them.
	three := h.claim(1, finisherOf(h.Lane).Done.TakeDone(h.Lane)...)
	h.expect("confirmed", "3-1", "3-1")
	if got := h.batchTimes(); got != "3" {
		t.Errorf("the claim times of batches %s are left, expected 3", got)
	}
	// They are sent twice, because the first answer was lost: so it means nothing that they no longer exist.
	call, result = h.begin(1, three...)
	h.Do("HDEL", h.Name+"_processing:w", "3-1") // as the first call did
	h.Do("HDEL", h.Name+"_claims:w", "3")
	h.fail(call, result)
	h.Do("SET", h.Name+"_worker:w", "another") // so that Redis checks each claim
	h.claim(0, finisherOf(h.Lane).Done.TakeDone(h.Lane)...)
	h.expect("confirmed twice", "", "")
	if finisherOf(h.Lane).Lost != 0 || strings.Contains(h.log.String(), "claim was lost") {
		t.Errorf("%d claims were counted as lost:\n%s", finisherOf(h.Lane).Lost, h.log)
	}
	if n := h.counters()["processed"]; n != 2 {
		t.Errorf("processed %d, expected the two that stood", n)
	}
}

// Two calls with claims of one batch are under way; both are answered.
func TestOneBatchEndsInTwoCalls(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b c d e")
	one := h.claim(3)
	firstCall, first := h.begin(1, one[0], one[1])
	secondCall, second := h.begin(1, one[2])
	secondCall.OK()
	await(h.bench, "the second claim", second)
	firstCall.OK()
	await(h.bench, "the first claim", first)
	h.expect("both are confirmed", "2-1 3-1", "2-1 3-1")
	if got := h.batchTimes(); got != "2 3" {
		t.Errorf("the claim times of batches %s are left, expected 2 and 3", got)
	}
	if n := h.counters()["processed"]; n != 3 {
		t.Errorf("processed %d, expected 3", n)
	}
}

// A claim call without a heartbeat claims nothing, but ends the claims that it acknowledges.
func TestAcknowledgementsOfAClaimWithoutHeartbeat(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b")
	one := h.claim(1)
	h.Do("DEL", h.Name+"_worker:w")
	call, result := h.begin(1, one...)
	call.OK()
	if got := await(h.bench, "the claim", result); !errors.Is(got.err, redisstore.ErrNoHeartbeat) {
		t.Errorf("%d claims, %v, expected errNoHeartbeat", len(got.claims), got.err)
	}
	h.expect("confirmed", "", "")
	if _, _, unclear := h.Count(); unclear || len(doneOn(h.Lane)) > 0 {
		t.Errorf("unclear %v, and %d to be sent again", unclear, len(doneOn(h.Lane)))
	}
	h.registered("again")
	h.LastBatch-- // the number of a batch that exists
	h.Do("HSET", h.Name+"_processing:w", "2-1", "x")
	call, result = h.begin(1)
	call.OK()
	if got := await(h.bench, "the claim", result); !errors.Is(got.err, redisstore.ErrBatchUsed) {
		t.Errorf("%d claims, %v, expected errBatchUsed", len(got.claims), got.err)
	}
}

// Lost claims are not acknowledged, because another worker may have them. Each is counted once.
func TestLostClaimsAreNotAcknowledged(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b c d")
	one := h.claim(4)
	if !h.Lose(one[1]) || h.Lose(one[1]) || !h.Lose(one[3]) {
		t.Error("expected news the first time, and only then")
	}
	kept, e := h.PrepareAcks(slices.Clone(one[:3]))
	if tokens(kept) != "1-1 1-3" || !slices.Equal(e.Tokens, []string{"1-1", "1-3"}) {
		t.Errorf("%q end, acknowledged by %q, expected those that are not lost", tokens(kept), e.Tokens)
	}
	if !signalled(finisherOf(h.Lane).Wakes) || finisherOf(h.Lane).Lost != 1 {
		t.Errorf("%d are to be counted, expected 1", finisherOf(h.Lane).Lost)
	}
	h.expect("one is settled", "1-1 1-3 1-4", "1-1 1-2 1-3 1-4")
	h.NoteUnsent(kept)
	h.Settle(one[0])
	if h.Lose(one[0]) {
		t.Error("a claim that has ended was lost")
	}
	h.claim(0, one[2], one[3])
	h.expect("all have ended", "", "1-1 1-2 1-4")
	if finisherOf(h.Lane).Lost != 2 || len(h.Batches) != 0 {
		t.Errorf("%d are to be counted, and %d batches are open: expected 2 and none", finisherOf(h.Lane).Lost,
			len(h.Batches))
	}
}

func TestLostClaimsDoNotRun(t *testing.T) {
	h := newHeldLane(t)
	h.pend("a b c")
	one := h.claim(3)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for _, c := range one {
		c.Fn = &function.Function{TakesCtx: c == one[2]}
	}
	h.Lose(one[0])
	if h.HandlerStarts(one[0], nil) || h.HandlerStarts(one[0], cancel) {
		t.Error("a lost claim begins")
	}
	if !h.HandlerStarts(one[1], nil) || !h.HandlerStarts(one[2], cancel) {
		t.Error("a claim does not begin")
	}
	h.CancelHandler(one[1])
	if h.HandlerStarts(one[1], nil) || h.HandlerStarts(one[1], cancel) {
		t.Error("the claim of a task begins that was canceled since it was looked up")
	}
	h.Lose(one[1])
	if !h.HandlerReturned(one[1]) {
		t.Error("the claim was lost while its handler ran, and that is not known at its end")
	}
	h.Lose(one[2])
	if err := context.Cause(ctx); !errors.Is(err, lane.ErrLost) {
		t.Errorf("the handler's context ended with %v, expected ErrLost", err)
	}
	if !h.HandlerReturned(one[2]) || one[2].Cancel != nil {
		t.Error("the handler has returned, and its context may be canceled still")
	}
}
