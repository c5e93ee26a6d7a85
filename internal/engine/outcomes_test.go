package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// outcomeCase describes a case that leads to one outcome.
type outcomeCase struct {
	handler any   // takes an int; nil: a function that the worker does not know
	args    []any // nil: 1
	task    func(*wire.Message)
	raw     string // pushed instead of a task
	config  func(*bench, *WorkerConfig)
	before  func(*bench, *Ref) // called before the task is claimed
	stops   bool               // whether the worker must stop while the handler runs
}

// TestOutcomes compares the table of outcomes with what a worker does: the state of the task, the script, the counters
// and the events.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	fails := func(int) error { return errors.New("no luck") }
	with := func(x wire.Extra) func(*wire.Message) {
		return func(m *wire.Message) { m.Meta.Extra = &x }
	}
	kept := with(wire.Extra{KeepResult: 60_000})
	for o, tt := range [lifecycle.Outcomes]outcomeCase{
		lifecycle.OutcomeDone:     {handler: func(int) {}},
		lifecycle.OutcomeComplete: {handler: func(int) {}, task: kept},
		lifecycle.OutcomeDrop: {
			handler: func(int) error { return lane.Decide(lane.DecisionDrop, 0, nil) }, task: kept,
		},
		lifecycle.OutcomeRetry: {handler: fails},
		lifecycle.OutcomePostpone: {handler: fails, config: func(_ *bench, cfg *WorkerConfig) {
			cfg.IsFailure = func(error) bool { return false }
		}},
		lifecycle.OutcomeArchive: {handler: func(int) error {
			return lane.Decide(lane.DecisionArchive, 0, errors.New("never"))
		}},
		lifecycle.OutcomeExpire: {handler: func(int) {}, task: with(wire.Extra{Expiry: 1})},
		lifecycle.OutcomeReject: {handler: func(int) {}, raw: "rubbish"},
		lifecycle.OutcomeSnooze: {
			handler: func(int) error { return lane.Decide(lane.DecisionSnooze, time.Hour, nil) },
		},
		lifecycle.OutcomePark:    {},
		lifecycle.OutcomeRelease: {stops: true},
		lifecycle.OutcomeDefer: {handler: func(int) {}, task: func(m *wire.Message) {
			m.Meta.Deaths, m.Meta.DiedAt = 3, time.Now().UnixMilli()
		}},
		lifecycle.OutcomeForward: {
			task:   func(m *wire.Message) { *m = wire.Message{Kind: wire.PyExtended, Path: "a:b"} },
			config: func(b *bench, cfg *WorkerConfig) { cfg.PythonQueue = b.Name + "-py" },
		},
		lifecycle.OutcomeGather: {
			handler: func(string, ...int) {}, args: []any{"a", 1},
			task: with(wire.Extra{Group: "g", Gather: &wire.Gather{Fixed: 1, Grace: 60_000, MaxSize: 9}}),
		},
		lifecycle.OutcomeCancel: {handler: func(int) {}, task: kept, before: func(b *bench, ref *Ref) {
			b.Must(ref.Cancel(b.T.Context()))
		}},
	} {
		outcome := lifecycle.Outcome(o)
		end := lifecycle.Ends[outcome]
		t.Run(fmt.Sprintf("%d %s to %s", o, end.Script, end.To), func(t *testing.T) { tt.run(t, server, outcome) })
	}
}

func (tt *outcomeCase) run(t *testing.T, server *redistest.Server, outcome lifecycle.Outcome) {
	t.Helper()
	b := newBenchOn(t, server)
	for _, sc := range redisstore.Scripts {
		b.Do("SCRIPT", "LOAD", sc.Source)
	}
	var s seam.Stepper
	handler := tt.handler
	if tt.stops {
		handler = func(ctx context.Context, _ int) error {
			s.Stop()
			<-ctx.Done()
			return ctx.Err()
		}
	}
	cfg := b.config()
	if tt.config != nil {
		tt.config(b, &cfg)
	}
	var w *Worker
	var h *heard
	f := b.fn("f", func(int) {})
	if handler == nil {
		w, h = b.listened(cfg)
	} else {
		f = b.fn("f", handler)
		w, h = b.listened(cfg, f)
	}
	b.enqueue(tt, f)

	s, err := NewStepper(t.Context(), w)
	b.Must(err)
	st, _ := s.(*stepper)
	server.WatchSlow(t, 0)
	c, ready, err := st.claimAny(t.Context(), true)
	b.Must(err)
	run, _, err := st.runClaim(c, ready)
	b.Must(err)
	scripts := b.endScripts()
	counters := b.counters()
	state := b.stateNow(w.ID())
	b.Must(s.Close())

	end := lifecycle.Ends[outcome]
	want := map[string]int{}
	for _, name := range end.Counters {
		want[name] = 1
	}
	var kinds []event.Kind
	for _, e := range h.of() {
		if e.Claim != nil && e.Kind != event.TaskStarted {
			kinds = append(kinds, e.Kind)
		}
	}
	if run.Outcome != end.Name || run.Failed != outcome.Failed() || state != end.To ||
		!slices.Equal(scripts, []string{end.Script}) || !maps.Equal(counters, want) ||
		!slices.Equal(kinds, end.Events) {
		t.Errorf("outcome %q, failed %v, state %q, scripts %v, counters %v, events %v\nexpected %+v",
			run.Outcome, run.Failed, state, scripts, counters, kinds, end)
	}
}

// enqueue enqueues the task of a case.
func (b *bench) enqueue(tt *outcomeCase, f *Function) {
	b.T.Helper()
	if tt.raw != "" {
		b.Do("RPUSH", b.Name, tt.raw)
		b.Do("RPUSH", b.Name+"_noti", "1")
		return
	}
	args := tt.args
	if args == nil {
		args = []any{1}
	}
	task := Call(f, args...)
	task.msg.Extend()
	if tt.task != nil {
		tt.task(&task.msg)
	}
	ref, err := b.q.Enqueue(b.T.Context(), task)
	b.Must(err)
	if tt.before != nil {
		tt.before(b, ref)
	}
}

// endScripts returns the scripts for the ends of claims that Redis has run since WatchSlow.
func (b *bench) endScripts() (names []string) {
	b.T.Helper()
	for _, slow := range b.Server.SlowLog(b.T) {
		if slow.Args[0] != "EVALSHA" {
			continue
		}
		for name, sc := range redisstore.Scripts {
			ends := slices.ContainsFunc(lifecycle.Ends[:], func(e lifecycle.End) bool { return e.Script == name })
			if ends && sc.Sha == slow.Args[1] {
				names = append(names, name)
			}
		}
	}
	return names
}

// stateNow returns the state of the only task.
func (b *bench) stateNow(worker string) lifecycle.State {
	b.T.Helper()
	var states []string
	for suffix, state := range map[string]lifecycle.State{
		"": lifecycle.StatePending, "_suspects": lifecycle.StatePending, "-py": lifecycle.StatePending,
		"_scheduled": lifecycle.StateScheduled, "_retry": lifecycle.StateRetry, "_parked": lifecycle.StateParked,
		"_archived": lifecycle.StateArchived, "_groups": lifecycle.StateAggregating,
	} {
		for range b.Size(suffix) {
			states = append(states, string(state))
		}
	}
	for range b.Int("EXISTS", b.Name+"_processing:"+worker) {
		states = append(states, string(lifecycle.StateActive))
	}
	results := b.Hash("_results")
	for range b.Size("_completed") {
		for _, info := range results {
			states = append(states, string(wire.ParseInfo([]byte(info)).Reason))
		}
	}
	if states == nil {
		return lifecycle.StateGone
	}
	return lifecycle.State(strings.Join(states, " and "))
}
