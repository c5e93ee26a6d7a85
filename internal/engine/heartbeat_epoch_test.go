package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/sweep"
)

// beating is one lane on a real server and its heartbeat, whose calls the test makes.
type beating struct {
	*bench
	*beat.Heartbeat
	lane   *lane.Lane
	dialer *faultnet.Dialer
}

// newBeating returns a heartbeat on whose connections plan causes faults. Redis knows the scripts.
func newBeating(t *testing.T, plan faultnet.Plan) *beating {
	t.Helper()
	b := newBench(t)
	for _, sc := range []*redisstore.Script{
		redisstore.Scripts["register"], redisstore.Scripts["beat"], redisstore.Scripts["claim"],
		redisstore.Scripts["ack"], redisstore.Scripts["release"],
	} {
		b.Do("SCRIPT", "LOAD", sc.Source)
	}
	rdb, dialer := b.faulty(plan)
	h := &beating{bench: b, dialer: dialer}
	h.lane = lane.New(redisstore.NewStore(rdb.loops, "", b.Name), "w", false)
	log := loop.NewJournal(b.log.logger())
	exec := exec.New(1, 0, quietLife, nil)
	finish.New(h.lane, exec, &finish.Decider{Events: &events.Listeners{}, Log: log})
	h.Heartbeat = beat.New([]*lane.Lane{h.lane}, quietLife, "v", sweep.NewLinkHealth(quietLife), log, exec,
		beat.NewAnnouncer(nil, nil, nil, time.Hour, log))
	t.Cleanup(h.Link.HangUp)
	return h
}

// expect checks the value of the heartbeat in Redis and the one that the lane has for it: "" if there is none.
func (h *beating) expect(what, inRedis, pulse string) {
	h.T.Helper()
	got, err := redis.String(h.Conn.Do("GET", h.Name+"_worker:w"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		h.T.Fatal(err)
	}
	held := ""
	if p := h.lane.Pulse.Load(); p != nil {
		held = *p
	}
	if got != inRedis || held != pulse {
		h.T.Errorf("%s: the heartbeat is %q in Redis and %q here, expected %q and %q", what, got, held, inRedis, pulse)
	}
	if h.lane.Epoch%2 != 0 {
		h.T.Errorf("%s: a registration goes on still", what)
	}
}

// claims claims n tasks.
func (h *beating) claims(n int) []*lane.Claim {
	h.T.Helper()
	claims, _, err := h.lane.Claim(bg, redisstore.ClaimCall{Most: n}, nil)
	if err != nil || len(claims) != n {
		h.T.Fatalf("%d claims, %v, expected %d", len(claims), err, n)
	}
	return claims
}

// swept takes a claim from the worker while its heartbeat is gone, as a sweeper does, and appends "+" to the message.
func (h *beating) swept(c *lane.Claim) {
	h.T.Helper()
	h.requeue("w", redisstore.Claimed{Token: c.Token, Message: c.Raw}, append(slices.Clone(c.Raw), '+'))
}

// onRegister breaks the nth registration.
func onRegister(fault faultnet.Fault, nth int) faultnet.Plan {
	n := 0
	return func(request []byte) faultnet.Fault {
		if calls(redisstore.Scripts["register"])(request) {
			if n++; n == nth {
				return fault
			}
		}
		return faultnet.None
	}
}

func TestFirstRegistrationWithoutReply(t *testing.T) {
	for _, fault := range []faultnet.Fault{faultnet.DropReply, faultnet.DropRequest} {
		t.Run(fault.String(), func(t *testing.T) {
			h := newBeating(t, onRegister(fault, 1))
			if err := h.Beat(bg); !errors.Is(err, redisstore.ErrUnknown) {
				t.Fatalf("%v, expected ErrUnknown", err)
			}
			inRedis := ""
			if fault == faultnet.DropReply {
				inRedis = "v:1"
			}
			h.expect("nobody knows", inRedis, "")
			if h.lane.Fresh(quietLife) || len(h.Exec.Changed) != 0 {
				t.Error("the worker believes in a heartbeat that Redis has not confirmed")
			}
			if err := h.Beat(bg); err != nil {
				t.Fatal(err)
			}
			h.expect("registered again", "v:2", "v:2")
			if !h.lane.Fresh(quietLife) || len(h.Exec.Changed) != 1 {
				t.Error("the heartbeat is confirmed, and the worker does not believe in it")
			}
			if err := h.Beat(bg); err != nil {
				t.Fatal(err)
			}
			h.expect("renewed", "v:2", "v:2")
		})
	}
}

// The heartbeat expires, a sweeper takes a claim, and the reply of the registration that shows this is lost. From then
// on the heartbeat in Redis is alive; only another registration shows which claims are lost.
func TestRegistrationWithoutReplyIsRepeated(t *testing.T) {
	h := newBeating(t, onRegister(faultnet.DropReply, 2))
	if err := h.Beat(bg); err != nil {
		t.Fatal(err)
	}
	h.Do("RPUSH", h.Name, "a", "b", "c")
	claims := h.claims(3)
	h.Do("DEL", h.Name+"_worker:w")
	h.swept(claims[1])
	if err := h.Beat(bg); !errors.Is(err, redisstore.ErrUnknown) {
		t.Fatalf("%v, expected ErrUnknown", err)
	}
	h.expect("nobody knows", "v:2", "v:1")
	if claims[1].Lost.Load() {
		t.Error("a claim is marked as lost, and nobody has said so")
	}
	if err := h.Beat(bg); err != nil {
		t.Fatal(err)
	}
	h.expect("registered once more", "v:3", "v:3")
	for i, want := range []bool{false, true, false} {
		if got := claims[i].Lost.Load(); got != want {
			t.Errorf("claim %s: lost is %v", claims[i].Token, got)
		}
	}
	if err := h.Beat(bg); err != nil {
		t.Fatal(err)
	}
	h.expect("renewed", "v:3", "v:3")
	// The worker now sends Redis the claims that it held back: two exist, one is lost.
	if finisherOf(h.lane).Ack(claims, 0) != nil {
		t.Error("not acknowledged")
	}
	if n := h.Size("_processing:w"); n != 0 || h.counters()["processed"] != 2 || finisherOf(h.lane).Lost != 1 {
		t.Errorf("%d claims are left, %v, %d to be counted as lost", n, h.counters(), finisherOf(h.lane).Lost)
	}
}

// Each registration has a new value, also without any fault.
func TestEveryRegistrationHasItsValue(t *testing.T) {
	h := newBeating(t, nil)
	for i := 1; i <= 3; i++ {
		if err := h.Beat(bg); err != nil {
			t.Fatal(err)
		}
		want := "v:" + strconv.Itoa(i)
		h.expect("registered", want, want)
		if h.lane.Epoch != uint64(2*i) {
			t.Errorf("registration %d: epoch %d", i, h.lane.Epoch)
		}
		h.Do("DEL", h.Name+"_worker:w")
	}
}

// The worker is registered again, but has not yet marked the lost claims: acknowledgements still contain the old value.
// So Redis checks each claim. An acknowledgement of a claim that a sweeper has taken does nothing, even if the task was
// claimed again since.
func TestAcknowledgementsUnderAnOldHeartbeat(t *testing.T) {
	for _, way := range []string{"with a claim", "on their own"} {
		t.Run(way, func(t *testing.T) {
			h := newBeating(t, nil)
			if err := h.Beat(bg); err != nil {
				t.Fatal(err)
			}
			h.Do("RPUSH", h.Name, "a", "b", "c")
			claims := h.claims(3)
			h.Do("DEL", h.Name+"_worker:w")
			h.swept(claims[1])
			if _, err := h.q.store.Register(bg, "w", quietLife, "v:2"); err != nil {
				t.Fatal(err)
			}
			h.expect("registered, nothing marked", "v:2", "v:1")
			var again []*lane.Claim
			if way == "with a claim" {
				var err error
				if again, _, err = h.lane.Claim(bg, redisstore.ClaimCall{Most: 5}, slices.Clone(claims)); err != nil {
					t.Fatal(err)
				}
			} else {
				again = h.claims(1)
				if finisherOf(h.lane).Ack(slices.Clone(claims), 0) != nil {
					t.Fatal("not acknowledged")
				}
			}
			if len(again) != 1 || string(again[0].Raw) != "b+" {
				t.Errorf("%d tasks claimed, expected the one that was swept", len(again))
			}
			if known, _, _ := h.lane.Count(); known != 1 || finisherOf(h.lane).Lost != 1 {
				t.Errorf("%d claims are known, and %d to be counted as lost: expected 1 and 1", known,
					finisherOf(h.lane).Lost)
			}
			if n := h.Size("_processing:w"); n != 1 || h.counters()["processed"] != 2 {
				t.Errorf("%d claims are left, counters %v: expected one and two processed", n, h.counters())
			}
			if n := strings.Count(h.log.String(), "claim was lost before the task ended"); n != 1 {
				t.Errorf("%d losses were logged, expected 1:\n%s", n, h.log)
			}
		})
	}
}

// lateSource returns connections that hold back the answers to a script.
type lateSource struct {
	Source
	script  *redisstore.Script
	on      atomic.Bool
	carried chan struct{} // receives when Redis has executed the call
	deliver chan struct{} // ends the delay
}

func (s *lateSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	conn, err := s.Source.Conn(ctx, key)
	if err != nil {
		return nil, err
	}
	return lateConn{conn, s}, nil
}

type lateConn struct {
	redis.Conn
	src *lateSource
}

func (c lateConn) wait(args []any) {
	if len(args) > 0 && args[0] == c.src.script.Sha && c.src.on.Load() {
		c.src.carried <- struct{}{}
		<-c.src.deliver
	}
}

func (c lateConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	reply, err := redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
	c.wait(args)
	return reply, err
}

func (c lateConn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	return redis.DoContext(c.Conn, ctx, cmd, args...)
}

func (c lateConn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

func (c lateConn) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(c.Conn, ctx)
}

// The heartbeat expires and is registered again while a claim is under way. Its tasks go back, and run once.
func TestTasksOfAClaimDuringARegistrationRunOnce(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = quietLife, true
	b.work(cfg, f).mustStop() // so that Redis knows the scripts
	src := &lateSource{
		Source: b.rdb.loops, script: redisstore.Scripts["claim"], carried: make(chan struct{}),
		deliver: make(chan struct{}),
	}
	w := b.workWith(FromSource(src), cfg, f)
	l := w.lanes[0]
	b.Until("the first look, which finds nothing, is over", func() bool { return l.Newest() > 0 })
	src.on.Store(true)
	if _, err := b.q.DelayMany(t.Context(), Call(f, 1), Call(f, 2), Call(f, 3)); err != nil {
		t.Fatal(err)
	}
	await(b, "the claim to be carried out", src.carried)
	src.on.Store(false)
	if n := b.Size("_processing:" + w.ID()); n == 0 {
		t.Fatal("nothing was claimed")
	}
	b.Do("DEL", b.Name+"_worker:"+w.ID())
	l.BeatNow()
	b.Until("the worker is registered again",
		func() bool { return strings.Contains(b.log.String(), "registered again") })
	if len(ran) > 0 {
		t.Error("a task ran before the claim was answered")
	}
	close(src.deliver)
	var got []int
	for range 3 {
		got = append(got, await(b, "a task", ran))
	}
	b.Idle()
	b.Until("it is logged that they went back", func() bool {
		return strings.Contains(b.log.String(), "gave back tasks whose claim got no reply")
	})
	w.mustStop()
	slices.Sort(got)
	if !slices.Equal(got, []int{1, 2, 3}) || len(ran) > 0 {
		t.Errorf("tasks %v ran, and %d more", got, len(ran))
	}
	if c := b.counters(); c["processed"] != 3 || c["lost"] != 0 {
		t.Errorf("counters %v", c)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// A worker whose own heartbeat had expired does not judge others by earlier observations: Redis may have lost their
// heartbeats, or all processes were suspended.
func TestRegistrationAgainBreaksContact(t *testing.T) {
	r := newReceivingWorker(t, nil)
	g := r.slotGroups[0]
	r.b.Must(g.heartbeat.Beat(t.Context()))
	t.Cleanup(g.heartbeat.Link.HangUp)
	before, ok := g.heartbeat.Health.UnbrokenSince()
	if !ok {
		t.Fatal("no contact after a heartbeat")
	}
	r.b.Do("DEL", r.b.Name+"_worker:"+r.ID())
	r.b.Must(g.heartbeat.Beat(t.Context()))
	r.b.Must(g.heartbeat.Beat(t.Context()))
	if since, ok := g.heartbeat.Health.UnbrokenSince(); !ok || !since.After(before) {
		t.Errorf("contact since %v, %v, expected later than %v", since, ok, before)
	}
}

// A worker's sweeper and its heartbeat share the record of calls and breaks.
func TestSweeperSharesTheHeartbeatsContact(t *testing.T) {
	r := newReceivingWorker(t, nil)
	g := r.slotGroups[0]
	if _, ok := g.heartbeat.Health.UnbrokenSince(); ok {
		t.Fatal("contact before any call")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() { g.sweeper.Run(ctx) })
	r.b.Until("the sweeper's calls count", func() bool {
		_, ok := g.heartbeat.Health.UnbrokenSince()
		return ok
	})
	cancel()
	sweeping.Wait()
}

// A worker that stops gives back claims in Redis that it does not know, and unregisters all the same.
func TestStopGivesBackUnknownClaims(t *testing.T) {
	r := newReceivingWorker(t, nil)
	h := r.slotGroups[0].heartbeat
	r.b.Do("DEL", r.b.Name+"_worker:"+r.ID())
	r.b.Must(h.Beat(t.Context()))
	h.Link.HangUp()
	r.b.Do("HSET", r.b.Name+"_processing:"+r.ID(), "7-1", "m")
	r.b.Must(r.unregister())
	if pending := r.b.List(""); len(pending) != 1 || pending[0] != "m" {
		t.Errorf("pending: %q, expected the task that nobody knew of", pending)
	}
	left := r.b.Size("_workers") + r.b.Size("_processing:"+r.ID()) + r.b.Int("EXISTS", r.b.Name+"_worker:"+r.ID())
	if left != 0 {
		t.Errorf("Redis still knows the worker: %v", redistest.Dump(t, r.b.Conn, r.b.Name))
	}
}

// TestRegistrationBesideAKeyOfAnotherType: a worker that is registered is not refused, even if it cannot give back an
// unknown claim, because it would never wait for the queue's tasks again.
func TestRegistrationBesideAKeyOfAnotherType(t *testing.T) {
	h := newBeating(t, nil)
	h.lane.LastBatch = 1 // of a claim without a reply
	h.Do("HSET", h.Name+"_processing:w", "1-1", "message")
	h.Do("SET", h.Name, "another type")
	if err := h.Beat(t.Context()); !redisstore.IsWrongType(err) {
		t.Errorf("the heartbeat returned %v, expected that a key is of another type", err)
	}
	if h.lane.Refused.Load() || !h.lane.Fresh(quietLife) {
		t.Error("the worker is not registered, or takes itself for refused")
	}
	h.Do("DEL", h.Name, h.Name+"_workers")
	h.Do("SET", h.Name+"_workers", "another type")
	h.Do("DEL", h.Name+"_worker:w") // as if it had expired
	if err := h.Beat(t.Context()); !redisstore.IsWrongType(err) || !h.lane.Refused.Load() {
		t.Errorf("the heartbeat returned %v, expected that the worker is refused", err)
	}
	if err := h.Beat(t.Context()); !redisstore.IsWrongType(err) {
		t.Errorf("the heartbeat returned %v, expected that the worker is refused", err)
	}
	if _, unbroken := h.Health.UnbrokenSince(); !unbroken {
		t.Error("contact counts as broken for as long as the worker is refused: its sweeper would find nobody dead")
	}
	h.Do("DEL", h.Name+"_workers")
	h.Must(h.Beat(t.Context()))
	if h.lane.Refused.Load() {
		t.Error("the worker takes itself for refused after its registration")
	}
}
