package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/engine"
)

// Discard makes an error after which a task is not tried again: returned by a handler, wrapped or not, it archives the
// task at once, whatever retries are left. Discard(nil) is nil, so that return delayed.Discard(f()) discards only what
// failed.
func Discard(err error) error {
	if err == nil {
		return nil
	}
	return engine.Say(engine.SaysDiscard, 0, err)
}

// Drop makes an error after which a task is forgotten: returned by a handler, wrapped or not, it ends the task as if it
// had succeeded, except that no result is kept. Nothing is archived and no failure is counted; err, which may be nil,
// goes into the log.
func Drop(err error) error { return engine.Say(engine.SaysDrop, 0, err) }

// RetryIn makes an error after which a task is tried again in d, rounded to milliseconds, in place of what the backoff
// says: returned by a handler, wrapped or not, it is a failure as any other and spends a retry. A d of zero or less
// tries again at once. RetryIn(d, nil) is nil, so that return delayed.RetryIn(d, f()) retries only what failed; to run
// a task again that has not failed there is Snooze.
func RetryIn(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return engine.Say(engine.SaysRetryIn, max(d, 0), err)
}

// Snooze makes an error after which a task runs again in d, rounded to milliseconds: returned by a handler, wrapped or
// not, it is no failure, spends no retry, and is counted as snoozed. A d of zero or less runs it again at once. A task
// may snooze as often as it likes; TTL and Deadline bound it.
func Snooze(d time.Duration) error { return engine.Say(engine.SaysSnooze, max(d, 0), nil) }
