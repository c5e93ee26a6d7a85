package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// movingName is what the names of archived tasks end in while they are moved.
const movingName = "#moving"

// moves reports whether somebody else moves a task at the moment.
func (a *actor) moves(t *listed) bool {
	return t.State == state.Archived && t.Reason == state.ReasonMoving && a.now.Sub(t.At) < lifecycle.MovingTime
}

// move moves tasks to another queue, which may be on another node of a cluster, where no script reaches both. A task is
// archived on its way, so that it cannot run at both ends, and is in one of them at least whenever this ends.
func (a *actor) move(ctx context.Context, tasks []listed) error {
	began := time.Now()
	way, err := a.toArchive(ctx, tasks)
	a.report.Done -= len(way)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // else tasks would be left half-way
	target := redisstore.NewStore(a.ins.src, a.ins.prefix, a.target.Name())
	var gone []string
	var stopped error // Redis cannot be asked, or refuses tasks
	returns := true   // tasks that do not arrive can be put back
	for i := range way {
		if stopped == nil && time.Since(began) > lifecycle.MovingTime/2 {
			stopped = errors.New("inspect: Redis is too slow to move tasks")
		}
		its, err := false, errStopped
		if stopped == nil {
			its, err = a.arrive(ctx, target, &way[i])
		}
		unknown := errors.Is(err, redisstore.ErrUnknown)
		switch returns = returns && (err == nil || unknown || a.putBack(ctx, &way[i])); {
		case err == nil:
			gone = append(gone, way[i].ID)
			continue
		case unknown:
			err = fmt.Errorf("it may be in queue %s too: look, and delete one of them: %w", target.Name, err)
			a.report.fail(way[i].ID, fmt.Errorf("it is in the archive of queue %s: %w", a.store.Name, err))
		case returns:
			a.report.fail(strings.TrimSuffix(way[i].ID, movingName), fmt.Errorf("it stays in queue %s: %w",
				a.store.Name, err))
		default:
			a.report.fail(way[i].ID, fmt.Errorf("it is in the archive of queue %s: %w", a.store.Name, err))
		}
		if stopped == nil && !its {
			stopped = err
		}
	}
	if len(gone) == 0 {
		return stopped
	}
	a.ins.registry.Announce(ctx, target.Name, a.targetLegacy)
	a.report.Done += len(gone)
	if _, err := a.store.Delete(ctx, redisstore.DeleteArchived, gone); err != nil {
		return errors.Join(fmt.Errorf("inspect: %d tasks are in queue %s, and still in the archive of queue %s, "+
			"where they must be deleted: %w", len(gone), target.Name, a.store.Name, err), stopped)
	}
	return stopped
}

// errStopped is about tasks that were not moved because others could not be.
var errStopped = errors.New("the move has stopped")

// putBack takes a task out of the archive to where it was before the move: a pending one to the end of its queue,
// others to their set and time. It reports whether that was done.
func (a *actor) putBack(ctx context.Context, t *listed) bool {
	var answers []int
	var err error
	if t.State == state.Pending {
		r := redisstore.Rerun{Name: t.ID, ID: t.ID, Old: t.raw, New: t.raw, Own: strings.HasPrefix(t.Options.Lock, "#")}
		answers, err = a.store.Rerun(ctx, []redisstore.Rerun{r})
	} else {
		one := redisstore.Refiled{ID: t.ID, Old: t.raw, New: t.raw, Until: t.Due, Info: t.info}
		if t.State == state.Archived {
			one.NewID = strings.TrimSuffix(t.ID, movingName)
		}
		if one.Info == nil {
			one.Info = (&wire.Info{Function: t.Function}).Encode() // in place of the info that says "moving"
		}
		answers, err = a.store.Refile(ctx, redisstore.ShelfArchived, shelves[t.State], true, []redisstore.Refiled{one})
	}
	return err == nil && len(answers) == 1 && answers[0] == 1
}

// arrive enqueues a task on the queue that it is moved to. its reports that an error is about this task alone.
func (a *actor) arrive(ctx context.Context, target *redisstore.Store, t *listed) (its bool, err error) {
	r, err := a.renewed(t, nil, t.State != state.Archived)
	if err != nil {
		return true, err
	}
	msg, err := wire.Parse(r.New, wire.WorkerLimits)
	if err == nil {
		if refused, err := settleForm(ctx, target, &msg); refused != nil || err != nil {
			return refused != nil, errors.Join(refused, err)
		}
	}
	batch := []redisstore.Envelope{{ID: r.ID, Message: r.New}}
	if t.State == state.Scheduled || t.State == state.Retry {
		err := target.Schedule(ctx, batch, t.Due.UnixMilli(), false)
		var taken *redisstore.TakenError
		return errors.As(err, &taken), err
	}
	return false, target.Enqueue(ctx, batch)
}
