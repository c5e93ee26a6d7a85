package delayed

import (
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// KeepResult keeps what the function returns for d after the task has succeeded, in milliseconds: the T of a result T or (T, error), which must be of a type that can be an argument.
// Await reads it, in any process. Who waits is also told when the task fails for good. A d of zero or less keeps nothing. Given to Func it
// is the function's default, given to Queue.With it holds for one call.
func KeepResult(d time.Duration) TaskOption { return keepResultOption(d) }

type keepResultOption time.Duration

func (o keepResultOption) write(x *wire.Extra, _ int64) {
	x.KeepResult = max(time.Duration(o).Milliseconds(), 0)
}

func (o keepResultOption) applyCall(c *callOptions) {
	c.extras, c.kept = append(slices.Clip(c.extras), o.write), time.Duration(o) >= time.Millisecond
}

func (o keepResultOption) applyFunc(d *funcDefaults) {
	d.extras = append(slices.Clip(d.extras), o.write)
}

func (o keepResultOption) String() string { return fmt.Sprintf("KeepResult(%v)", time.Duration(o)) }

// Retention keeps the task itself for d after it has succeeded, in milliseconds: its call, its times and what the function returned. Without it a
// task is gone once it is done. A d of zero or less keeps nothing. Given to Func it is the function's default, given to Queue.With it
// holds for one call. With KeepResult, everything is kept for the longer of the two.
func Retention(d time.Duration) TaskOption { return retentionOption(d) }

type retentionOption time.Duration

func (o retentionOption) write(x *wire.Extra, _ int64) {
	x.Retention = max(time.Duration(o).Milliseconds(), 0)
}

func (o retentionOption) applyCall(c *callOptions) {
	c.extras, c.kept = append(slices.Clip(c.extras), o.write), time.Duration(o) >= time.Millisecond
}

func (o retentionOption) applyFunc(d *funcDefaults) {
	d.extras = append(slices.Clip(d.extras), o.write)
}

func (o retentionOption) String() string { return fmt.Sprintf("Retention(%v)", time.Duration(o)) }

// keeps says whether a message says that something is kept of its task.
func keeps(x *wire.Extra) bool { return x != nil && (x.KeepResult > 0 || x.Retention > 0) }
