package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/isolate"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

var errJudged = errors.New("no luck")

// trial is a task whose handler has returned an error.
type trial struct {
	cfg     Config
	opts    []FuncOption
	extra   *wire.Extra
	retried int
	plain   bool // a message without meta
	stops   bool // the worker stops
	err     error
}

// noRetries is MaxRetry for no retries, because 0 means the default.
const noRetries = -1

// The outcomes that handlers can return and the options of functions, as in the public package.

func Discard(err error) error { return lane.Decide(lane.DecisionArchive, 0, err) }

func Drop(err error) error { return lane.Decide(lane.DecisionDrop, 0, err) }

func RetryIn(d time.Duration, err error) error {
	return lane.Decide(lane.DecisionRetryIn, max(d, 0), err)
}

func Snooze(d time.Duration) error { return lane.Decide(lane.DecisionSnooze, max(d, 0), nil) }

func Backoff(delays ...time.Duration) FuncOption {
	return func(p *function.Policy) { p.Delays = delays }
}

func BackoffFunc(fn func(int, error) time.Duration) FuncOption {
	return func(p *function.Policy) { p.Backoff = fn }
}

func MaxBackoff(d time.Duration) FuncOption { return func(p *function.Policy) { p.Longest = d } }

func FailOnTimeout() FuncOption { return func(p *function.Policy) { p.FailOnTimeout = true } }

// nilError is an error type whose methods need a value, as most are.
type nilError struct{ inner error }

func (e *nilError) Error() string { return "failed: " + e.inner.Error() }
func (e *nilError) Unwrap() error { return e.inner }

// judgedAt is the time of the decision by Redis's clock.
var judgedAt = time.UnixMilli(1_700_000_000_000)

func (j trial) judge(t *testing.T) (e lane.Ending, done bool, info map[string]any) {
	t.Helper()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	cfg := j.cfg
	if cfg.Backoff == nil {
		cfg.Backoff = finish.DefaultBackoff
	}
	tasks, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if j.stops {
		cancel(lane.ErrShutdown)
	}
	r := &finish.Decider{
		Program: program{}, IsFailure: cfg.IsFailure, Backoff: cfg.Backoff, Events: &events.Listeners{}, Worker: "w",
		Log: loop.NewJournal(logger), HandlersCtx: tasks,
	}
	f := newFunction(t, "judged", func() {}, j.opts...)
	c := &lane.Claim{Lane: lane.New(redisstore.NewStore(nil, "", "q"), "w", false), Fn: f, Raw: []byte("raw")}
	switch cfg.MaxRetry {
	case 0:
		c.Lane.MaxRetry = 25
	case noRetries:
	default:
		c.Lane.MaxRetry = cfg.MaxRetry
	}
	c.Msg = wire.Message{
		Kind: wire.GoExtended, Path: "judged",
		Meta: wire.Meta{ID: "id", Retried: j.retried, Extra: j.extra},
	}
	if j.plain {
		c.Msg = wire.Message{Kind: wire.GoPlain, Path: "judged"}
	}
	before := fmt.Sprintf("%+v %+v", c.Msg, j.extra)
	var v finish.Decided
	r.Decide(c, j.err, judgedAt, &v)
	e, done = v.End, v.Done
	if after := fmt.Sprintf("%+v %+v", c.Msg, j.extra); after != before {
		t.Errorf("the claim's message was changed from %s to %s", before, after)
	}
	if e.Info != nil {
		value, _, err := wire.DecodeAny(e.Info)
		if err != nil {
			t.Fatal(err)
		}
		info, _ = value.(map[string]any)
	}
	return e, done, info
}

// parsed returns the meta of the message as it is stored.
func (j trial) parsed(t *testing.T, e *lane.Ending) wire.Meta {
	t.Helper()
	m, err := wire.Parse(e.Message, wire.WorkerLimits)
	if err != nil {
		t.Fatalf("message %q: %v", e.Message, err)
	}
	return m.Meta
}

func seconds(n ...int64) *wire.Extra {
	x := &wire.Extra{}
	for _, s := range n {
		x.RetryDelays = append(x.RetryDelays, s*1000)
	}
	return x
}

func with10s(int) time.Duration { return 10 * time.Second }

// in returns the time d after the decision, in the unit of messages.
func in(d time.Duration) int64 { return judgedAt.Add(d).UnixMilli() }

func TestJudgeBackoff(t *testing.T) {
	perRetry := BackoffFunc(func(retried int, err error) time.Duration {
		if !errors.Is(err, errJudged) {
			panic("another error")
		}
		return time.Duration(retried+1) * time.Hour
	})
	for _, tt := range []struct {
		name string
		trial
		wait time.Duration
	}{
		{"the worker's", trial{}, 10 * time.Second},
		{"the call's first", trial{extra: seconds(1, 2, 3)}, time.Second},
		{"the call's second", trial{extra: seconds(1, 2, 3), retried: 1}, 2 * time.Second},
		{"the last holds", trial{extra: seconds(1, 2, 3), retried: 20}, 3 * time.Second},
		{
			"the function's list",
			trial{opts: []FuncOption{Backoff(4*time.Second, 5*time.Second)}, retried: 1},
			5 * time.Second,
		},
		{
			"the function's list, its last",
			trial{opts: []FuncOption{Backoff(4*time.Second, 5*time.Second)}, retried: 9},
			5 * time.Second,
		},
		{
			"the call's before the function's",
			trial{opts: []FuncOption{Backoff(4 * time.Second)}, extra: seconds(1)},
			time.Second,
		},
		{"the function's function", trial{opts: []FuncOption{perRetry}, retried: 2}, 3 * time.Hour},
		{
			"the call's before the function's function",
			trial{opts: []FuncOption{perRetry}, extra: seconds(1)},
			time.Second,
		},
		{"cut by the call", trial{
			opts:  []FuncOption{perRetry, MaxBackoff(time.Minute)},
			extra: &wire.Extra{RetryCap: 2000},
		}, 2 * time.Second},
		{"cut by the function", trial{opts: []FuncOption{perRetry, MaxBackoff(time.Minute)}}, time.Minute},
		{"the worker's, cut", trial{extra: &wire.Extra{RetryCap: 2000}}, 2 * time.Second},
		{"a list, cut", trial{extra: &wire.Extra{RetryDelays: []int64{60_000}, RetryCap: 2000}}, 2 * time.Second},
		{"negative is none", trial{opts: []FuncOption{BackoffFunc(func(int, error) time.Duration { return -1 })}}, 0},
		{"said by the handler", trial{
			err:   RetryIn(7*time.Second, errJudged),
			extra: &wire.Extra{RetryDelays: []int64{1000}, RetryCap: 2000},
		}, 7 * time.Second},
		{"said and wrapped", trial{err: fmt.Errorf("so: %w", RetryIn(7*time.Second, errJudged))}, 7 * time.Second},
		{"said as negative", trial{err: RetryIn(-1, errJudged)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Backoff = with10s
			if tt.err == nil {
				tt.err = errJudged
			}
			e, done, info := tt.judge(t)
			m := tt.parsed(t, &e)
			if done || e.Outcome != lifecycle.OutcomeRetry || e.Wait != tt.wait ||
				m.Retried != tt.retried+1 {
				t.Errorf("%+v, meta %+v, expected a retry in %v", e, m, tt.wait)
			}
			if info["reason"] != "failed" || info["attempts"] != int64(tt.retried+1) ||
				!strings.Contains(fmt.Sprint(info["error"]), "no luck") {
				t.Errorf("info %v", info)
			}
		})
	}
}

func TestJudgeOutcomes(t *testing.T) {
	never := func(error) bool { return false }
	zero := []FuncOption{MaxRetry(0)}
	late := &lane.TimeoutError{Limit: time.Second, Err: errJudged}
	for _, tt := range []struct {
		name string
		trial
		outcome lifecycle.Outcome
		wait    time.Duration
		raw     bool // whether the message stays unchanged
		reason  string
	}{
		{
			"failed, no retries left",
			trial{opts: zero},
			lifecycle.OutcomeArchive, lifecycle.ArchivedLife, false,
			"failed",
		},
		{
			"no child process was ready in time",
			trial{
				opts: []FuncOption{MaxRetry(0), FailOnTimeout()},
				err:  &lane.TimeoutError{Limit: time.Second, Err: fmt.Errorf("no luck: %w", isolate.ErrNotBegun)},
			},
			lifecycle.OutcomePostpone, 10 * time.Second, false, "not failed",
		},
		{
			"failed, RetryUntil holds",
			trial{opts: zero, extra: &wire.Extra{RetryUntil: in(11 * time.Second)}},
			lifecycle.OutcomeRetry, 10 * time.Second, false, "failed",
		},
		{
			"failed, RetryUntil too soon",
			trial{extra: &wire.Extra{RetryUntil: in(10 * time.Second)}},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"failed, deadline too soon",
			trial{extra: &wire.Extra{Deadline: in(10 * time.Second)}},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"failed, of no use then",
			trial{extra: &wire.Extra{Expiry: in(10 * time.Second)}},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"failed, time enough",
			trial{extra: &wire.Extra{Expiry: in(11 * time.Second), Deadline: in(time.Hour)}},
			lifecycle.OutcomeRetry, 10 * time.Second, false, "failed",
		},
		{
			"discarded",
			trial{err: Discard(errJudged)},
			lifecycle.OutcomeArchive, lifecycle.ArchivedLife, false,
			"failed",
		},
		{
			"discarded, wrapped",
			trial{err: fmt.Errorf("so: %w", Discard(errJudged))},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"discarded, joined",
			trial{err: errors.Join(errJudged, Discard(errJudged))},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"discarded while the worker stops",
			trial{err: Discard(errJudged), stops: true},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"the outermost holds",
			trial{err: RetryIn(time.Second, Discard(errJudged))},
			lifecycle.OutcomeRetry,
			time.Second, false, "failed",
		},
		{"snoozed", trial{err: Snooze(time.Hour), opts: zero}, lifecycle.OutcomeSnooze, time.Hour, false, "snoozed"},
		{"snoozed, negative", trial{err: Snooze(-1)}, lifecycle.OutcomeSnooze, 0, false, "snoozed"},
		{
			"snoozed while the worker stops",
			trial{err: Snooze(time.Hour), stops: true},
			lifecycle.OutcomeSnooze,
			time.Hour, false, "snoozed",
		},
		{
			"snoozed, a message without meta",
			trial{err: Snooze(time.Hour), plain: true},
			lifecycle.OutcomeSnooze,
			time.Hour, true, "snoozed",
		},
		{
			"failed, a message without meta",
			trial{plain: true},
			lifecycle.OutcomeRetry, 10 * time.Second, false,
			"failed",
		},
		{"failed while the worker stops", trial{stops: true}, lifecycle.OutcomeRelease, 0, false, ""},
		{
			"to be retried while the worker stops",
			trial{err: RetryIn(time.Hour, errJudged), stops: true},
			lifecycle.OutcomeRelease,
			0, false, "",
		},
		{
			"no failure",
			trial{cfg: Config{IsFailure: never}},
			lifecycle.OutcomePostpone, 10 * time.Second, false,
			"not failed",
		},
		{
			"no failure, no retries left",
			trial{cfg: Config{IsFailure: never}, opts: zero},
			lifecycle.OutcomePostpone,
			10 * time.Second, false, "not failed",
		},
		{
			"no failure, no time left",
			trial{cfg: Config{IsFailure: never}, extra: &wire.Extra{RetryUntil: in(time.Second)}},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"discarded whatever it is",
			trial{cfg: Config{IsFailure: never}, err: Discard(errJudged)},
			lifecycle.OutcomeArchive, lifecycle.ArchivedLife, false, "failed",
		},
		{"RetryIn spends a retry whatever it is", trial{
			cfg: Config{IsFailure: never}, opts: zero,
			err: RetryIn(1, errJudged),
		}, lifecycle.OutcomeArchive, lifecycle.ArchivedLife, false, "failed"},
		{"took too long", trial{err: late}, lifecycle.OutcomeRetry, 10 * time.Second, false, "failed"},
		{
			"took too long, and shall not",
			trial{err: late, opts: []FuncOption{FailOnTimeout()}},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
		{
			"a timeout of somebody else",
			trial{err: fmt.Errorf("so: %w", lane.ErrTimeout), opts: []FuncOption{FailOnTimeout()}},
			lifecycle.OutcomeRetry,
			10 * time.Second, false, "failed",
		},
		{
			"wrong arguments",
			trial{err: &function.ArgumentError{Func: "judged"}},
			lifecycle.OutcomeArchive, lifecycle.ArchivedLife, true,
			"arguments",
		},
		{
			"wrong arguments of another",
			trial{err: &function.ArgumentError{Func: "other"}},
			lifecycle.OutcomeRetry,
			10 * time.Second, false, "failed",
		},
		{
			"IsFailure panics",
			trial{cfg: Config{IsFailure: func(error) bool { panic("asked") }, MaxRetry: noRetries}},
			lifecycle.OutcomeArchive, lifecycle.ArchivedLife, false, "failed",
		},
		{
			"the error panics",
			trial{cfg: Config{MaxRetry: noRetries}, err: (*nilError)(nil)},
			lifecycle.OutcomeArchive,
			lifecycle.ArchivedLife, false, "failed",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Backoff = with10s
			if tt.err == nil {
				tt.err = errJudged
			}
			e, done, info := tt.judge(t)
			if done || e.Outcome != tt.outcome || e.Wait != tt.wait {
				t.Errorf("%+v, expected outcome %d, wait %v", e, tt.outcome, tt.wait)
			}
			if tt.reason != "" && info["reason"] != tt.reason {
				t.Errorf("info %v, expected reason %q", info, tt.reason)
			}
			if raw := string(e.Message) == "raw"; raw != tt.raw {
				t.Errorf("message %q", e.Message)
			}
			if tt.reason != "" && e.ID == "" {
				t.Error("it has no id")
			}
			if o := tt.outcome; !tt.raw && o != lifecycle.OutcomeArchive && o != lifecycle.OutcomeRelease {
				due := tt.parsed(t, &e).Extra.Due
				if want := judgedAt.Add(e.Wait).UnixMilli(); due != want {
					t.Errorf("due at %d, expected %d", due, want)
				}
			}
			if tt.reason == "snoozed" && (info["error"] != nil || info["stack"] != nil) {
				t.Errorf("info %v: a task that has not failed has no error", info)
			}
			if tt.reason == "failed" {
				if first := tt.parsed(t, &e).Extra.FirstFailed; first != judgedAt.UnixMilli() ||
					info["first"] != first || info["at"] != first {
					t.Errorf("it failed first at %d, and the info is %v", first, info)
				}
			}
		})
	}
	if _, done, _ := (trial{err: Drop(nil)}).judge(t); !done {
		t.Error("what is dropped is not done")
	}
	if _, done, _ := (trial{err: fmt.Errorf("so: %w", Drop(errJudged)), stops: true}).judge(t); !done {
		t.Error("what is dropped with an error is not done")
	}
}

// A dropped task frees its lock, and callers that wait for its result learn that there is none.
func TestJudgeDropsTasksThatHoldSomething(t *testing.T) {
	e, done, _ := trial{err: Drop(nil), extra: &wire.Extra{Lock: "l"}}.judge(t)
	if done || e.Outcome != lifecycle.OutcomeDrop || e.ID != "id" || e.Wait != 0 || e.Info != nil {
		t.Errorf("%+v, %t", e, done)
	}
	e, done, _ = trial{err: Drop(nil), extra: &wire.Extra{Lock: "l", KeepResult: 1000}}.judge(t)
	if info := wire.ParseInfo(e.Info); done || e.Outcome != lifecycle.OutcomeDrop || e.ID != "id" ||
		e.Wait != time.Second ||
		info.Reason != "dropped" || info.Result != nil {
		t.Errorf("%+v, %t", e, done)
	}
}

// The message has the time of the first failure, the info that of the last.
func TestJudgeRemembersTheFirstFailure(t *testing.T) {
	j := trial{err: errJudged, retried: 3, extra: &wire.Extra{FirstFailed: 1_600_000_000_000, Group: "g"}}
	e, _, info := j.judge(t)
	m := j.parsed(t, &e)
	if m.Extra.FirstFailed != 1_600_000_000_000 || m.Extra.Group != "g" || info["first"] != int64(1_600_000_000_000) ||
		info["at"] != judgedAt.UnixMilli() {
		t.Errorf("meta %+v, info %v", m.Extra, info)
	}
}

// If functions of users panic while the worker decides, it decides without them, with the default backoff.
func TestJudgeSurvivesPanics(t *testing.T) {
	for name, j := range map[string]trial{
		"IsFailure":   {cfg: Config{IsFailure: func(error) bool { panic("asked") }}},
		"Backoff":     {cfg: Config{Backoff: func(int) time.Duration { panic("asked") }}},
		"BackoffFunc": {opts: []FuncOption{BackoffFunc(func(int, error) time.Duration { panic("asked") })}},
		"and are late": {
			opts:  []FuncOption{BackoffFunc(func(int, error) time.Duration { panic("asked") })},
			extra: &wire.Extra{RetryUntil: in(time.Hour)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j.err = errJudged
			e, _, info := j.judge(t)
			if e.Outcome != lifecycle.OutcomeRetry || e.Wait < 3*time.Second || e.Wait > 7*time.Second {
				t.Errorf("%+v", e)
			}
			if text := fmt.Sprint(info["error"]); !strings.Contains(text, "asked") ||
				!strings.Contains(text, "no luck") {
				t.Errorf("info %v", info)
			}
		})
	}
}

func TestTimeoutError(t *testing.T) {
	late := &lane.TimeoutError{Limit: 1500 * time.Millisecond, Err: errJudged}
	if !errors.Is(late, lane.ErrTimeout) || !errors.Is(late, errJudged) ||
		late.Error() != "delayed: handler took longer than 1.5s: no luck" {
		t.Error(late)
	}
}
