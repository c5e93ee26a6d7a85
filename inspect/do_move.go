package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

const (
	// movingName is what the names of archived tasks end in while they are moved.
	movingName = "#moving"
	// movingTime is how long nobody else may take tasks that are moved.
	movingTime = time.Minute
)

// moves reports whether somebody else moves a task at the moment.
func (w *hand) moves(t *listed) bool {
	return t.State == state.Archived && t.Reason == lifecycle.ReasonMoving && w.now.Sub(t.At) < movingTime
}

// move moves tasks to another queue, which may be on another node of a cluster, where no script reaches both. A task is
// archived on its way, so that it cannot run at both ends, and is in one of them at least whenever this ends.
func (w *hand) move(ctx context.Context, tasks []listed) error {
	began := time.Now()
	way, err := w.toArchive(ctx, tasks, lifecycle.ReasonMoving)
	w.report.Done -= len(way)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // else tasks would be left half-way
	target := redisstore.NewStore(w.ins.src, w.ins.prefix, w.target.Name())
	var gone []string
	var stopped error // Redis cannot be asked, or refuses tasks
	for i := range way {
		if stopped == nil && time.Since(began) > movingTime/2 {
			stopped = errors.New("inspect: Redis is too slow to move tasks")
		}
		if stopped != nil {
			w.report.fail(way[i].ID, fmt.Errorf("it is in the archive of queue %s, because the move has stopped",
				w.store.Name))
			continue
		}
		its, err := w.arrive(ctx, target, &way[i])
		if err == nil {
			gone = append(gone, way[i].ID)
			continue
		}
		if errors.Is(err, redisstore.ErrUnknown) {
			err = fmt.Errorf("it may be in queue %s too: look, and delete one of them: %w", target.Name, err)
		}
		w.report.fail(way[i].ID, fmt.Errorf("it is in the archive of queue %s: %w", w.store.Name, err))
		if !its {
			stopped = err
		}
	}
	if len(gone) == 0 {
		return stopped
	}
	w.ins.registry.Announce(ctx, target.Name, w.targetLegacy)
	w.report.Done += len(gone)
	if _, err := w.store.Delete(ctx, redisstore.DeleteArchived, gone); err != nil {
		return errors.Join(fmt.Errorf("inspect: %d tasks are in queue %s, and still in the archive of queue %s, "+
			"where they must be deleted: %w", len(gone), target.Name, w.store.Name, err), stopped)
	}
	return stopped
}

// arrive enqueues a task on the queue that it is moved to. its says that an error is about this task alone.
func (w *hand) arrive(ctx context.Context, target *redisstore.Store, t *listed) (its bool, err error) {
	r, err := w.renewed(t, nil, t.State != state.Archived)
	if err != nil {
		return true, err
	}
	msg, err := wire.Parse(r.New, wire.WorkerLimits)
	if err == nil && msg.Python() {
		want := redisstore.ExtendedForm
		if msg.Kind == wire.Py {
			want = redisstore.PlainForm
		}
		form, err := target.SettleMode(ctx, want)
		if err != nil {
			return false, err
		}
		if form != want {
			return true, fmt.Errorf("inspect: queue %s takes Python tasks in the %s form, and this one has the %s form",
				target.Name, form, want)
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
