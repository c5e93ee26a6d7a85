package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

var errJudged = errors.New("no luck")

// infoOf returns the info of a task that is in one of the sets.
func (b *bench) infoOf(ref *delayed.Ref) string {
	b.T.Helper()
	return b.Hash("_info")[ref.ID()]
}

func TestHandlersSayWhatBecomesOfTheirTasks(t *testing.T) {
	for _, tt := range []struct {
		says     error
		where    string // where the task is then; "" gone
		counters map[string]int
	}{
		{delayed.Discard(errJudged), "_archived", map[string]int{"processed": 1, "failed": 1, "archived": 1}},
		{fmt.Errorf("so: %w", delayed.Drop(errJudged)), "", map[string]int{"processed": 1}},
		{delayed.Drop(nil), "", map[string]int{"processed": 1}},
		{delayed.RetryIn(time.Hour, errJudged), "_retry", map[string]int{"processed": 1, "failed": 1, "retried": 1}},
		{delayed.Snooze(time.Hour), "_scheduled", map[string]int{"snoozed": 1}},
	} {
		t.Run(strings.TrimPrefix(tt.where, "_")+fmt.Sprintf(" %v", tt.says), func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", func() error { return tt.says })
			b.work(b.config(), f)
			b.delay(f)
			b.Until("the task has ended", func() bool { return len(b.counters()) == len(tt.counters) })
			b.Idle()
			if got := b.counters(); fmt.Sprint(got) != fmt.Sprint(tt.counters) {
				t.Errorf("counters %v, expected %v", got, tt.counters)
			}
			for _, suffix := range []string{"_archived", "_retry", "_scheduled"} {
				want := 0
				if suffix == tt.where {
					want = 1
				}
				if n := b.Size(suffix); n != want {
					t.Errorf("%d tasks in %s, expected %d", n, suffix, want)
				}
			}
			b.Check(redistest.Invariants{})
		})
	}
}

func TestSnoozedTasksRunAgainWithoutSpendingRetries(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(context.Context) error {
		if ran.Add(1) < 5 {
			return delayed.Snooze(time.Millisecond)
		}
		return errors.New("no luck")
	}, delayed.MaxRetry(1), delayed.Backoff(0))
	b.work(b.config(), f)
	b.delay(f)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	want := map[string]int{"snoozed": 4, "processed": 2, "failed": 2, "retried": 1, "archived": 1}
	if got := b.counters(); ran.Load() != 6 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ran %d times, counters %v, expected %v", ran.Load(), got, want)
	}
	b.Check(redistest.Invariants{})
}

// An error that is no failure counts as none on the last attempt too.
func TestNoFailureOnTheLastAttempt(t *testing.T) {
	b := newBench(t)
	busy := errors.New("busy")
	var ran atomic.Int64
	f := b.fn("f", func() error {
		if ran.Add(1) < 4 {
			return busy
		}
		return nil
	}, delayed.MaxRetry(0))
	cfg := b.config()
	cfg.IsFailure = func(err error) bool { return !errors.Is(err, busy) }
	b.work(cfg, f)
	b.delay(f)
	b.Until("it is done", func() bool { return b.counters()["processed"] == 1 })
	if got := b.counters(); ran.Load() != 4 || got["retried"] != 3 || len(got) != 2 {
		t.Errorf("ran %d times, counters %v", ran.Load(), got)
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

// RetryUntil replaces the number of retries, and ends the task in time.
func TestRetryUntil(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func() error { ran.Add(1); return errors.New("no luck") }, delayed.MaxRetry(1),
		delayed.Backoff(0, 0, 0, time.Hour))
	b.work(b.config(), f)
	ref := b.delayWith(b.q.With(delayed.RetryUntil(time.Now().Add(10*time.Minute))), f)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	if n := ran.Load(); n != 4 {
		t.Errorf("ran %d times, expected 4, more than MaxRetry allows and none after the time", n)
	}
	if info := b.infoOf(ref); !strings.Contains(info, "no luck") || !strings.Contains(info, "first") {
		t.Errorf("info %q", info)
	}
}

// The function's settings for retries apply to messages without meta as well, because the worker knows them.
func TestPolicyOfTheFunctionHoldsForMessagesWithoutIt(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func() error { ran.Add(1); return errors.New("no luck") }, delayed.Backoff(0, 0, time.Hour))
	b.work(b.config(), f)
	if _, err := b.q.Enqueue(t.Context(), delayed.NewGoTask(b.Name+".f")); err != nil {
		t.Fatal(err)
	}
	b.Until("it waits", func() bool { return ran.Load() == 3 && b.Size("_retry") == 1 })
}

func TestOutcomesAreErrors(t *testing.T) {
	if delayed.Discard(nil) != nil || delayed.RetryIn(time.Second, nil) != nil {
		t.Error("nil is not nil any more")
	}
	for _, err := range []error{
		delayed.Discard(errJudged), delayed.Drop(errJudged),
		delayed.RetryIn(time.Second, errJudged),
	} {
		if !errors.Is(err, errJudged) || err.Error() != "no luck" {
			t.Errorf("%v is not what it was", err)
		}
	}
	if text := delayed.Drop(nil).Error() + ", " +
		delayed.Snooze(time.Minute).Error(); text != "delayed: dropped, delayed: snoozed for 1m0s" {
		t.Error(text)
	}
}
