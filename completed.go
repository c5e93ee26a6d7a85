package delayed

import (
	"fmt"
	"reflect"
	"time"
)

// leaves says whether a task that has succeeded leaves something behind, so that it is not only acknowledged.
func (c *claim) leaves() bool {
	x := c.msg.Meta.Extra
	return x != nil && (x.KeepResult > 0 || x.Retention > 0 || x.Lock != "")
}

// completion is the ending of a task that has succeeded and leaves something behind. value is what its function returned, began when it was called.
func (w *Worker) completion(c *claim, value any, began, now time.Time) ending {
	e := ending{claim: c, outcome: outcomeComplete, id: c.msg.Meta.ID}
	x := c.msg.Meta.Extra
	keep := time.Duration(max(x.KeepResult, x.Retention)) * time.Millisecond
	if keep == 0 || e.id == "" {
		return e
	}
	info := taskInfo{
		reason: "completed", function: c.msg.Path, attempts: c.msg.Meta.Retried + 1, deaths: c.msg.Meta.Deaths, began: began, at: now, worker: w.id,
	}
	var err error
	if info.result, err = c.fn.encodeResult(value); err != nil {
		// The function has done its work. Running it again would not make its result fit.
		info.errText = err.Error()
		w.log.with("queue", c.lane.store.name).with("function", c.msg.Path).with("id", e.id).WithError(err).
			Error("task is done, but its result cannot be kept")
	}
	if x.Retention > 0 {
		info.message = c.raw
	}
	e.wait, e.info = keep, info.encode()
	return e
}

// planResult prepares keeping what the function returns. A type that cannot travel is an error only for those who want to keep it.
func (f *function) planResult(t reflect.Type) {
	var err error
	if f.returns, err = newParam(t); err != nil {
		f.noResult = fmt.Errorf("%w: %s: expected a result that can travel, as KeepResult or Retention is given, found: %w", ErrFunction, f.name, err)
	}
}

// encodeResult encodes what the function has returned; nil if it returns nothing.
func (f *function) encodeResult(value any) (b []byte, err error) {
	switch {
	case !f.result:
		return nil, nil
	case f.noResult != nil:
		return nil, f.noResult
	}
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("delayed: encoding the result of %s panicked: %v", f.name, p)
		}
	}()
	// Of the declared type: an interface does not say by itself that it is one.
	v := reflect.New(f.returns.typ).Elem()
	if value != nil {
		v.Set(reflect.ValueOf(value))
	}
	if b, err = f.returns.codec.Append(nil, v); err != nil {
		return nil, fmt.Errorf("delayed: result of %s: %w", f.name, err)
	}
	return b, nil
}

// completedOf turns endings into what the store takes.
func completedOf(group []ending) []completed {
	tasks := make([]completed, len(group))
	for i := range group {
		e := &group[i]
		t := completed{token: e.claim.token, id: e.id, keep: e.wait, value: e.info}
		if x := e.claim.msg.Meta.Extra; x != nil {
			t.lock, t.awaited = x.Lock != "", x.KeepResult > 0 || x.Retention > 0
		}
		tasks[i] = t
	}
	return tasks
}
