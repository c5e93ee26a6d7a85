package delayed

import (
	"context"
	"errors"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/wire"
)

// Progress reports how far a task is: done of total, in units of the handler's choice, and a note of up to 4 KiB; a
// negative number counts as 0. ctx is the context that the handler was given, or made of it. Others read the last
// report by Ref.Progress and Ref.Info while the task is active; it goes with the task's end, but stays with what
// KeepResult and Retention keep and with what is known of a task that has failed.
//
// It may be called as often as is convenient: at most ten reports a second reach Redis, and the last one always does.
// An error says that ctx is none of a handler, that the task carries no id (ErrNoID), that it is another worker's by
// now (ErrLost), or that Redis could not be told; none of them needs to stop the handler.
func Progress(ctx context.Context, done, total int64, note string) error {
	c := engine.ClaimFromContext(ctx)
	if c == nil {
		return errors.New("delayed: Progress outside of a handler: pass the context that the handler was given")
	}
	return c.Report(ctx, wire.Progress{Done: done, Total: total, Note: note})
}

// Progress asks Redis what the task has reported last; zeros if it has not, or if it is pending or nothing is known of
// it any more. Errors are those of asking.
func (r *Ref) Progress(ctx context.Context) (done, total int64, note string, err error) {
	info, err := r.Info(ctx)
	return info.Done, info.Total, info.Note, err
}
