package delayed_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/wire"
)

var someTime = time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)

// What options for retries and times write into messages, and how they are printed.
func TestRetryAndTimeOptions(t *testing.T) {
	const now = 1_700_000_000_000
	many := make([]time.Duration, wire.MaxRetryDelays)
	for _, tt := range []struct {
		option delayed.Option
		text   string
		want   wire.Extra
	}{
		{
			delayed.Backoff(time.Second, 90*time.Second, 0), "Backoff(1s, 1m30s, 0s)",
			wire.Extra{RetryDelays: []int64{1000, 90_000, 0}},
		},
		{delayed.Backoff(1999 * time.Microsecond), "Backoff(1.999ms)", wire.Extra{RetryDelays: []int64{1}}},
		{
			delayed.Backoff(many...), "Backoff(" + strings.Repeat("0s, ", 63) + "0s)",
			wire.Extra{RetryDelays: make([]int64, 64)},
		},
		{delayed.MaxBackoff(time.Minute), "MaxBackoff(1m0s)", wire.Extra{RetryCap: 60_000}},
		{delayed.MaxBackoff(time.Millisecond), "MaxBackoff(1ms)", wire.Extra{RetryCap: 1}},
		{
			delayed.RetryUntil(someTime), "RetryUntil(2030-01-02T03:04:05.006Z)",
			wire.Extra{RetryUntil: someTime.UnixMilli()},
		},
		{delayed.Timeout(time.Minute), "Timeout(1m0s)", wire.Extra{Timeout: 60_000}},
		{delayed.Timeout(time.Millisecond + 1), "Timeout(1.000001ms)", wire.Extra{Timeout: 2}},
		{delayed.Timeout(0), "Timeout(0s)", wire.Extra{Timeout: wire.Unlimited}},
		{delayed.Timeout(math.MaxInt64), "Timeout(2562047h47m16.854775807s)", wire.Extra{Timeout: wire.Unlimited + 1}},
		{delayed.Deadline(someTime), "Deadline(2030-01-02T03:04:05.006Z)", wire.Extra{Deadline: someTime.UnixMilli()}},
		{delayed.TTL(time.Hour), "TTL(1h0m0s)", wire.Extra{Expiry: now + 3_600_000}},
		{delayed.TTL(time.Millisecond), "TTL(1ms)", wire.Extra{Expiry: now + 1}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if got := tt.option.String(); got != tt.text {
				t.Errorf("shown as %s", got)
			}
			q := offline(t)
			if got := extraOf(t, q.With(tt.option), delayed.Call(benchTask, 1, "x"), now); got != fmt.Sprint(tt.want) {
				t.Errorf("%s, expected %+v", got, tt.want)
			}
			if o, ok := tt.option.(delayed.TaskOption); ok {
				task := delayed.Call(delayed.Func(benchTask, o), 1, "x")
				if got := extraOf(t, q, task, now); got != fmt.Sprint(tt.want) {
					t.Errorf("as a default %s, expected %+v", got, tt.want)
				}
			}
		})
	}
}

// extraOf prints what options have written into the message of a task.
func extraOf(t *testing.T, q *delayed.Queue, task *delayed.Task, now int64) string {
	t.Helper()
	message, _, _, err := delayed.Message(q, task, now)
	if err != nil {
		t.Fatal(err)
	}
	x := parsed(t, message).Meta.Extra
	if x == nil {
		return "none"
	}
	return fmt.Sprint(*x)
}

func TestRetryAndTimeOptionsRefuse(t *testing.T) {
	q := offline(t)
	for _, tt := range []struct {
		option delayed.Option
		text   string
	}{
		{delayed.Backoff(), "option Backoff(): expected 1 to 64 delays, found 0"},
		{delayed.Backoff(make([]time.Duration, 65)...), "expected 1 to 64 delays, found 65"},
		{
			delayed.Backoff(time.Second, -time.Second),
			"option Backoff(1s, -1s): expected no negative delay, found -1s as number 2",
		},
		{delayed.MaxBackoff(0), "option MaxBackoff(0s): expected a positive duration"},
		{delayed.MaxBackoff(-1), "expected a positive duration"},
		{delayed.RetryUntil(time.Time{}), "option RetryUntil(0001-01-01T00:00:00Z): expected a time after 1970"},
		{delayed.Timeout(-1), "option Timeout(-1ns): expected a positive duration, or 0 for no bound"},
		{delayed.Deadline(time.Unix(0, 0)), "expected a time after 1970"},
		{delayed.TTL(0), "option TTL(0s): expected a positive duration"},
	} {
		t.Run(tt.option.String()[:min(40, len(tt.option.String()))], func(t *testing.T) {
			_, err := q.With(delayed.MaxRetry(1), tt.option,
				delayed.MaxRetry(2)).With(delayed.MaxRetry(3)).Delay(benchTask, 1, "x")
			if !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("With: %v", err)
			}
			if o, ok := tt.option.(delayed.TaskOption); ok {
				_, err := q.Delay(delayed.Func(benchTask, o), 1, "x")
				if !errors.Is(err, delayed.ErrFunction) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("Func: %v", err)
				}
			}
		})
	}
	backoff := delayed.BackoffFunc(func(int, error) time.Duration { return 0 })
	for text, f := range map[string]*delayed.Function{
		"expected a function, found nil":                delayed.Func(benchTask, delayed.BackoffFunc(nil)),
		"expected Backoff or BackoffFunc, found both":   delayed.Func(benchTask, backoff, delayed.Backoff(time.Second)),
		"expected Backoff or BackoffFunc, found both; ": delayed.Func(benchTask, delayed.Backoff(time.Second), backoff),
	} {
		if _, err := q.Delay(f, 1, "x"); !errors.Is(err, delayed.ErrFunction) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, expected %s", err, text)
		}
	}
}

// Queues derived from one queue do not see each other's options.
func TestOptionsOfSiblingsStayApart(t *testing.T) {
	q := offline(t).With(delayed.MaxBackoff(time.Second), delayed.TTL(time.Hour), delayed.RetryUntil(someTime))
	a, b := q.With(delayed.Timeout(time.Second)), q.With(delayed.Timeout(2*time.Second))
	for i, q := range []*delayed.Queue{a, b} {
		m := parsed(t, messageOf(t, q, delayed.Call(benchTask, 1, "x")))
		if got := m.Meta.Extra.Timeout; got != int64(i+1)*1000 {
			t.Errorf("queue %d: %d ms", i, got)
		}
	}
}

// Backoff copies the caller's slice, so that the caller may change it.
func TestBackoffCopiesItsDelays(t *testing.T) {
	delays := []time.Duration{time.Second, time.Minute}
	o := delayed.Backoff(delays...)
	delays[0] = time.Hour
	m := parsed(t, messageOf(t, offline(t).With(o), delayed.Call(benchTask, 1, "x")))
	if got := m.Meta.Extra.RetryDelays; !slices.Equal(got, []int64{1000, 60_000}) {
		t.Errorf("delays %v", got)
	}
}
