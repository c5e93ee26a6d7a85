package delayedtest_test

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
)

// TestOptionsOfTasks shows what options have said, in the units in which they were said.
func TestOptionsOfTasks(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	now := delayedtest.Now(t, q).Truncate(time.Millisecond)
	delay(t, q.With(
		delayed.Timeout(90*time.Second), delayed.Retention(2*time.Hour), delayed.KeepResult(1500*time.Millisecond),
		delayed.Deadline(now.Add(time.Hour)), delayed.TTL(30*time.Minute), delayed.UniqueKey("k", time.Hour),
		delayed.Header("tenant", "a"),
	), number)
	got := delayedtest.Tasks(t, q)[0]
	if got.Timeout != 90*time.Second || got.Retention != 2*time.Hour || got.KeepResult != 1500*time.Millisecond {
		t.Errorf("found %v, %v and %v", got.Timeout, got.Retention, got.KeepResult)
	}
	if !got.Deadline.Equal(now.Add(time.Hour)) || !got.Expiry.Equal(now.Add(30*time.Minute)) {
		t.Errorf("found %v and %v at %v", got.Deadline, got.Expiry, now)
	}
	if got.Lock != "k:k" || !reflect.DeepEqual(got.Headers, map[string]string{"tenant": "a"}) || got.MaxRetry != nil {
		t.Errorf("found %+v", got)
	}
	delay(t, q.With(delayed.Group("g")), digest, 7, "tea")
	if got := delayedtest.Tasks(t, q)[1]; got.Group != "g" || got.State != "aggregating" || got.Due.IsZero() {
		t.Errorf("found %+v", got)
	}
}

func number() (int, error) { return 1, nil }
func announce(to string)   {}

// TestOneArgumentIsCompared, as several are.
func TestOneArgumentIsCompared(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	delay(t, q, announce, "ann")
	delayedtest.RequireEnqueued(t, q, announce, "ann")
	delayedtest.RequireEnqueued(t, q, announce, delayedtest.Any)
	delayedtest.RequireEnqueued(t, q, announce, delayedtest.AnyArgs)
	delayedtest.RefuteEnqueued(t, q, announce, "bob")
	fails(t, func(t testing.TB) { delayedtest.RequireEnqueued(t, q, announce, "bob") }, `announce("bob")`)
}

// TestManyTasksAreCutShort shows the first of many tasks, and how many more there are.
func TestManyTasksAreCutShort(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	for i := range 33 {
		delay(t, q, announce, fmt.Sprint("nr ", i))
	}
	fails(t, func(t testing.TB) { delayedtest.RequireEmpty(t, q) }, `announce("nr 29")`, "… and 3 more")
}

// TestNobodyAnswersWhileRedisIsDown: what was not enqueued for certain is no ErrUnknown.
func TestNobodyAnswersWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	mend := delayedtest.Break(t, q, delayedtest.Down)
	_, err := q.Delay(ping)
	var dialling *net.OpError
	if !errors.As(err, &dialling) || dialling.Op != "dial" || errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("found %v", err)
	}
	mend()
	delayedtest.RequireEmpty(t, q)
	delay(t, q, ping)
}

// TestDrainTellsOfWhatCouldNotRun tells of tasks that were archived without being called, and why.
func TestDrainTellsOfWhatCouldNotRun(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	delay(t, q.With(delayed.TTL(time.Minute)), announce, "ann")
	delayedtest.Advance(t, q, time.Hour)
	fails(t, func(t testing.TB) { delayedtest.Drain(t, q, announce) }, `announce("ann") is archived: `,
		"its TTL ended at")
}
