// Package arguments has calls whose arguments are checked.
package arguments

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

var sumFloats = delayed.Func(mail.Sum[float64], delayed.Name("sum.float"))

func counts(ctx context.Context, q *delayed.Queue, rest []any) error {
	_, err := q.Delay(mail.Welcome, 42, "en")
	_, err = q.Delay(mail.Welcome, 42)             // want `delayed: example.com/app/mail.Welcome: expected 2 arguments \(int64, string\), found 1`
	_, err = q.Delay(mail.Welcome, 42, "en", true) // want `expected 2 arguments \(int64, string\), found 3`
	_, err = q.Delay(mail.Digest, 1)               // want `expected no arguments, found 1`
	_, err = q.Delay(mail.Index)                   // want `expected at least 1 argument \(string, ...int64\), found 0`
	_, err = q.Delay(mail.Index, "a")
	_, err = q.Delay(mail.Welcome, rest...)
	_, err = q.Delay(mail.SumInts, 1) // want `sum.int: expected 2 arguments \(int, int\), found 1`
	_, err = q.Delay(mail.SumInts, 1, 2)
	_, err = q.Delay(sumFloats, 1, 2.5)
	_, err = q.Delay(sumFloats, 1, "x")                                                           // want `sum.float: argument 2: expected float64, found string`
	_, err = q.DelayContext(ctx, mail.Welcome, 42)                                                // want `found 1`
	_, err = q.Enqueue(ctx, delayed.Call(mail.Welcome, "42", "en"))                               // want `argument 1: expected int64, found string; convert it`
	_, err = q.DelayMany(ctx, delayed.Call(mail.Welcome, 1, "en"), delayed.Call(mail.Welcome, 2)) // want `found 1`
	if err != nil {
		return err
	}
	return q.Ref("x").RunAgainWith(ctx, delayed.Call(mail.Welcome, 42, 43)) // want `argument 2: expected string, found int 43`
}

func kinds(q *delayed.Queue, n int, u uint64, box any, f float32) (err error) {
	_, err = q.Delay(mail.Level, 255)
	_, err = q.Delay(mail.Level, 300) // want `argument 1: expected uint8, found int 300; give a number that it can hold`
	_, err = q.Delay(mail.Level, -1)  // want `expected uint8, found int -1`
	_, err = q.Delay(mail.Level, n)
	_, err = q.Delay(mail.Level, box)
	_, err = q.Delay(mail.Level, 1.0) // want `expected uint8, found float64 1`
	_, err = q.Delay(mail.Level, nil) // want `expected uint8, found nil; give a value, because uint8 has no nil`
	_, err = q.Delay(mail.Owner, int8(3))
	_, err = q.Delay(mail.Owner, mail.UserID(3))
	_, err = q.Delay(mail.Ratio, 1<<24)
	_, err = q.Delay(mail.Ratio, 1<<24+1) // want `expected float32, found int 16777217`
	_, err = q.Delay(mail.Ratio, 1.5)     // want `expected float32, found float64 1.5`
	_, err = q.Delay(mail.Ratio, f)
	_, err = q.Delay(mail.Place, mail.Order{})
	_, err = q.Delay(mail.Place, &mail.Order{})  // want `expected mail.Order, found \*mail.Order; give what it points to`
	_, err = q.Delay(mail.PlaceAt, mail.Order{}) // want `expected \*mail.Order, found mail.Order; give its address`
	_, err = q.Delay(mail.PlaceAt, nil)
	_, err = q.Delay(mail.Place, nil)         // want `expected mail.Order, found nil`
	_, err = q.Delay(mail.Index, "a", 1, "b") // want `argument 3: expected int64, found string`
	_, err = q.Delay(mail.Index, "a", []int64{1, 2})
	_, err = q.Delay(mail.Index, "a", []int{1, 2}) // want `argument 2: expected int64, found \[\]int`
	_, err = q.Delay(mail.Index, "a", u, n)
	_, err = q.Delay(mail.Index, "\xff") // want `expected string in UTF-8, found string of 1 bytes that is not UTF-8`
	_, err = q.Delay(mail.Anything, box)
	_, err = q.Delay(mail.Anything, nil)
	_, err = q.Delay(mail.Anything, make(chan int)) // want `expected a value that can travel, found another: chan int cannot travel in a task`
	_, err = q.Delay(mail.Anything, func() {})      // want `func\(\) cannot travel`
	_, err = q.Delay(mail.Anything, q)              // want `found a \*Queue, which cannot travel: let the worker have its own`
	return err
}

func units(q *delayed.Queue, d time.Duration, n int64) (err error) {
	_, err = q.Delay(mail.Pause, time.Second)
	_, err = q.Delay(mail.Pause, n)
	_, err = q.Delay(mail.Pause, 0)
	_, err = q.Delay(mail.Pause, 30)            // want `argument 1: expected time.Duration, found int 30, which counts nanoseconds`
	_, err = q.Delay(mail.Seconds, time.Second) // want `expected int64, found time.Duration \(1s\), which arrives without its unit`
	_, err = q.Delay(mail.Seconds, d)           // want `found time.Duration, which arrives without its unit`
	_, err = q.Delay(mail.Seconds, int64(d))
	_, err = q.With(delayed.In(60)).Delay(mail.Digest) // want `In: expected at least 1ms, or a unit such as time.Second behind the number, found 60ns`
	_, err = q.With(delayed.TTL(0)).Delay(mail.Digest) // want `TTL: expected a positive duration, found 0s`
	_, err = q.With(delayed.In(0)).Delay(mail.Digest)
	_, err = q.With(delayed.UniqueKey("k", 3600)).Delay(mail.Digest) // want `UniqueKey: expected at least 1ms`
	return err
}

func misplaced(ctx context.Context, q *delayed.Queue) (err error) {
	_, err = q.Delay(ctx, mail.Welcome, 42, "en")                      // want `function cannot be delayed: context: expected a function, found a context.Context; call DelayContext`
	_, err = q.Delay(mail.Welcome, ctx, 42, "en")                      // want `argument 1: expected int64, found a context.Context, which is no argument: call DelayContext`
	_, err = q.DelayContext(ctx, mail.Welcome, ctx, 42, "en")          // want `leave it out, the worker provides one`
	_, err = q.Enqueue(ctx, delayed.Call(mail.Welcome, ctx, 42, "en")) // want `leave it out, the worker provides one`
	_, err = q.Delay(mail.Welcome, 42, "en", delayed.In(time.Hour))    // want `argument 3: expected no argument, found the option In, which is no argument: give it to Queue.With`
	_, err = q.Delay(mail.Anything, delayed.Name("x"))                 // want `the option Name, which is no argument: give it to Func`
	_, err = q.Enqueue(ctx, delayed.NewGoTask("a.b", 1, ctx))          // want `argument 2: expected a value, found a context.Context, which is no argument: pass it to Enqueue`
	_, err = q.Enqueue(ctx, delayed.NewGoTask("a:b", 1))               // want `expected a path that tasks can carry, found "a:b" with a colon`
	_, err = q.Enqueue(ctx, delayed.NewPyTask("a.b", nil, nil))        // want `expected a path that tasks can carry, found Python path "a.b"`
	return err
}
