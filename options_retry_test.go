package delayed

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

var someTime = time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)

// optionsQueue is a queue that nothing is enqueued on.
func optionsQueue(t *testing.T) *Queue {
	t.Helper()
	rdb, err := Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return NewQueue("options", rdb)
}

// What the options of retries and times write into messages, and how they are shown.
func TestRetryAndTimeOptions(t *testing.T) {
	const now = 1_700_000_000_000
	many := make([]time.Duration, wire.MaxRetryDelays)
	for _, tt := range []struct {
		option Option
		text   string
		want   wire.Extra
	}{
		{
			Backoff(time.Second, 90*time.Second, 0), "Backoff(1s, 1m30s, 0s)",
			wire.Extra{RetryDelays: []int64{1000, 90_000, 0}},
		},
		{Backoff(1999 * time.Microsecond), "Backoff(1.999ms)", wire.Extra{RetryDelays: []int64{1}}},
		{Backoff(many...), "Backoff(" + strings.Repeat("0s, ", 63) + "0s)", wire.Extra{RetryDelays: make([]int64, 64)}},
		{MaxBackoff(time.Minute), "MaxBackoff(1m0s)", wire.Extra{RetryCap: 60_000}},
		{MaxBackoff(time.Millisecond), "MaxBackoff(1ms)", wire.Extra{RetryCap: 1}},
		{RetryUntil(someTime), "RetryUntil(2030-01-02T03:04:05.006Z)", wire.Extra{RetryUntil: someTime.UnixMilli()}},
		{Timeout(time.Minute), "Timeout(1m0s)", wire.Extra{Timeout: 60_000}},
		{Timeout(time.Millisecond + 1), "Timeout(1.000001ms)", wire.Extra{Timeout: 2}},
		{Timeout(0), "Timeout(0s)", wire.Extra{Timeout: wire.Unlimited}},
		{Timeout(math.MaxInt64), "Timeout(2562047h47m16.854775807s)", wire.Extra{Timeout: wire.Unlimited + 1}},
		{Deadline(someTime), "Deadline(2030-01-02T03:04:05.006Z)", wire.Extra{Deadline: someTime.UnixMilli()}},
		{TTL(time.Hour), "TTL(1h0m0s)", wire.Extra{Expiry: now + 3_600_000}},
		{TTL(time.Millisecond), "TTL(1ms)", wire.Extra{Expiry: now + 1}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if got := tt.option.String(); got != tt.text {
				t.Errorf("shown as %s", got)
			}
			var c callOptions
			tt.option.forQueueWith(&c)
			got := extraOf(nil, c.extras, now)
			if c.err != nil || got == nil || fmt.Sprint(*got) != fmt.Sprint(tt.want) {
				t.Errorf("%+v, %v, expected %+v", got, c.err, tt.want)
			}
			if o, ok := tt.option.(TaskOption); ok {
				var d funcDefaults
				o.forFunc(&d)
				if got := extraOf(d.extras, nil, now); d.err != nil || got == nil ||
					fmt.Sprint(*got) != fmt.Sprint(tt.want) {
					t.Errorf("as a default %+v, %v, expected %+v", got, d.err, tt.want)
				}
			}
		})
	}
}

func TestRetryAndTimeOptionsRefuse(t *testing.T) {
	q := optionsQueue(t)
	for _, tt := range []struct {
		option Option
		text   string
	}{
		{Backoff(), "option Backoff(): expected 1 to 64 delays, found 0"},
		{Backoff(make([]time.Duration, 65)...), "expected 1 to 64 delays, found 65"},
		{
			Backoff(time.Second, -time.Second),
			"option Backoff(1s, -1s): expected no negative delay, found -1s as number 2",
		},
		{MaxBackoff(0), "option MaxBackoff(0s): expected a positive duration"},
		{MaxBackoff(-1), "expected a positive duration"},
		{RetryUntil(time.Time{}), "option RetryUntil(0001-01-01T00:00:00Z): expected a time after 1970"},
		{Timeout(-1), "option Timeout(-1ns): expected a positive duration, or 0 for no bound"},
		{Deadline(time.Unix(0, 0)), "expected a time after 1970"},
		{TTL(0), "option TTL(0s): expected a positive duration"},
	} {
		t.Run(tt.option.String()[:min(40, len(tt.option.String()))], func(t *testing.T) {
			_, err := q.With(MaxRetry(1), tt.option, MaxRetry(2)).With(MaxRetry(3)).Delay(benchTask, 1, "x")
			if !errors.Is(err, ErrArguments) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("With: %v", err)
			}
			if o, ok := tt.option.(TaskOption); ok {
				_, err := q.Delay(Func(benchTask, o), 1, "x")
				if !errors.Is(err, ErrFunction) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("Func: %v", err)
				}
			}
		})
	}
	backoff := BackoffFunc(func(int, error) time.Duration { return 0 })
	for text, f := range map[string]*Function{
		"expected a function, found nil":                Func(benchTask, BackoffFunc(nil)),
		"expected Backoff or BackoffFunc, found both":   Func(benchTask, backoff, Backoff(time.Second)),
		"expected Backoff or BackoffFunc, found both; ": Func(benchTask, Backoff(time.Second), backoff),
	} {
		if _, err := q.Delay(f, 1, "x"); !errors.Is(err, ErrFunction) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, expected %s", err, text)
		}
	}
}

// Queues made of one queue do not see each other's options.
func TestOptionsOfSiblingsStayApart(t *testing.T) {
	q := optionsQueue(t).With(MaxBackoff(time.Second), TTL(time.Hour), RetryUntil(someTime))
	a, b := q.With(Timeout(time.Second)), q.With(Timeout(2*time.Second))
	for i, q := range []*Queue{a, b} {
		if got := extraOf(nil, q.options.extras, 0).Timeout; got != int64(i+1)*1000 {
			t.Errorf("queue %d: %d ms", i, got)
		}
	}
}

// The caller's slice is the caller's.
func TestBackoffCopiesItsDelays(t *testing.T) {
	delays := []time.Duration{time.Second, time.Minute}
	o := Backoff(delays...)
	delays[0] = time.Hour
	var c callOptions
	o.forQueueWith(&c)
	if got := extraOf(nil, c.extras, 0).RetryDelays; !slices.Equal(got, []int64{1000, 60_000}) {
		t.Errorf("delays %v", got)
	}
}
