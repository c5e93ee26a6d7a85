package engine

import (
	"context"

	"github.com/godelayed/delayed/internal/loop"
)

// claimParked claims at most room parked tasks of queue i, and returns how many of them will run here.
func (f *fetcher) claimParked(ctx context.Context, i, room int) (kept int) {
	fl := flight{lane: i, asked: room, parked: true}
	f.exec.beginClaim(room)
	fl.claims, fl.err = f.lanes[i].claimParked(context.WithoutCancel(ctx), room)
	if !f.lanes[i].parked.some.Load() {
		f.onDue() // the mover may find more of them
	}
	kept = f.takeReply(ctx, fl)
	if len(fl.claims) > 0 {
		queue, function := f.lanes[i].store.Name, fl.claims[0].msg.Path
		f.lines.Log(loop.LineKey{Queue: queue, Reason: "unparked", Function: function}, func(n int) {
			f.log.With("queue", queue).With("function",
				function).Counted(n).Info("claimed parked tasks: this worker can run them")
		})
	}
	return kept
}
