package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// park returns the ending that parks a task until a worker comes that can run it.
func (d *decider) park(c *Claim, reason state.Reason, now time.Time, fields ...string) ending {
	id := c.msg.Meta.ID
	if id == "" {
		id = wire.NewTaskID()
	}
	queue, path := c.lane.store.Name, c.msg.Path
	d.lines.Log(loop.LineKey{Queue: queue, Reason: string(reason), Function: path}, func(n int) {
		log := d.log.With("queue", queue).With("function", path).With("id", id).Counted(n)
		if len(fields) > 0 {
			log = log.With("fields", strings.Join(fields, ", "))
		}
		log.Warn("task parked: this worker cannot run it (" + string(reason) + ")" + parkedAdvice[reason])
	})
	d.events.emitFor(c, Event{Kind: event.TaskParked, Reason: reason})
	info := wire.Info{Reason: reason, Function: c.msg.Path, Fields: fields, At: now, Worker: d.worker}
	if len(fields) > 0 {
		info.Error = unknownFieldsText(c.msg.Path, fields)
	}
	return ending{
		claim: c, outcome: lifecycle.OutcomePark, wait: lifecycle.ParkedLife, id: id, message: c.raw,
		info: info.Encode(),
	}
}

// parkedAdvice says in the log what to do, where more is needed than a worker that knows the function.
var parkedAdvice = map[state.Reason]string{
	state.ReasonPlainPython: ": the workers of WorkerConfig.PythonQueue break on extended messages; serve another " +
		"queue with godelayed's workers and name that, or have its producers open this queue as Legacy",
}

// unknownFieldsText returns the error of a task that is parked because of fields.
func unknownFieldsText(path string, fields []string) string {
	return fmt.Sprintf("delayed: %s: the structs of this worker lack fields of the task (argument.field): %s; run a "+
		"worker whose structs have them",
		path, strings.Join(fields, ", "))
}
