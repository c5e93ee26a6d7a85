package delayed

import (
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// KeepResult keeps what the function returns for d after the task has succeeded, rounded to milliseconds: the T of a
// result T or (T, error), which must be of a type that can be an argument. Await reads it, in any process. Who waits is
// also told when the task fails for good. A d of zero or less keeps nothing. Given to Func it is the function's
// default, given to Queue.With it holds for one call.
func KeepResult(d time.Duration) TaskOption {
	return keepOption{"KeepResult", d, func(x *wire.Extra, ms int64) { x.KeepResult = ms }}
}

// Retention keeps the task itself for d after it has succeeded, rounded to milliseconds: its call, its times and what
// the function returned. Without it a task is gone once it is done. A d of zero or less keeps nothing. Given to Func it
// is the function's default, given to Queue.With it holds for one call. With KeepResult, everything is kept for the
// longer of the two.
func Retention(d time.Duration) TaskOption {
	return keepOption{"Retention", d, func(x *wire.Extra, ms int64) { x.Retention = ms }}
}

// keepOption says how long something of a task is kept that has succeeded.
type keepOption struct {
	name string
	life time.Duration
	set  func(x *wire.Extra, ms int64)
}

func (o keepOption) extra() extra {
	return func(x *wire.Extra, _ int64) { o.set(x, max(o.life.Milliseconds(), 0)) }
}

func (o keepOption) applyCall(c *callOptions) {
	if want, wrong := tooShort(o.life); wrong {
		c.fault(o, want)
	}
	c.write(o.extra())
	c.kept = o.life >= time.Millisecond
}

func (o keepOption) applyFunc(d *funcDefaults) {
	if want, wrong := tooShort(o.life); wrong {
		d.fault(o, want)
	}
	d.write(o.extra())
}

func (o keepOption) String() string { return fmt.Sprintf("%s(%v)", o.name, o.life) }
