// Package typed makes functions whose calls and results the compiler checks:
//
//	var Welcome = typed.Func2(mail.Welcome) // func(ctx context.Context, userID int64, lang string) error
//
//	ref, err := Welcome.Delay(q, 42, "en")
//	err = w.Register(Welcome)
//
// The functions take a context first and up to four arguments, and return an error, or a value and an error. All others
// keep delayed.Queue.Delay, which checks the same when it is called. Each type here embeds a *delayed.Function and can
// be given to everything that takes one.
package typed

import (
	"context"

	"github.com/godelayed/delayed"
)

// Function0 is Function2 for functions of no argument.
type Function0[T any] struct{ *delayed.Function }

// Func0 is Func2 for functions of no argument.
func Func0(fn func(context.Context) error, opts ...delayed.FuncOption) Function0[struct{}] {
	return Function0[struct{}]{delayed.Func(fn, opts...)}
}

// ResultFunc0 is ResultFunc2 for functions of no argument.
func ResultFunc0[T any](fn func(context.Context) (T, error), opts ...delayed.FuncOption) Function0[T] {
	return Function0[T]{delayed.Func(fn, opts...)}
}

// Delay is delayed.Queue.Delay.
func (f Function0[T]) Delay(q *delayed.Queue) (*delayed.Ref, error) { return q.Delay(f.Function) }

// DelayContext is delayed.Queue.DelayContext.
func (f Function0[T]) DelayContext(ctx context.Context, q *delayed.Queue) (*delayed.Ref, error) {
	return q.DelayContext(ctx, f.Function)
}

// Call is delayed.Call.
func (f Function0[T]) Call() *delayed.Task { return delayed.Call(f.Function) }

// Await is delayed.Await for the task of a call of f; if f has no result, it is delayed.Ref.Wait.
func (f Function0[T]) Await(ctx context.Context, ref *delayed.Ref) (T, error) {
	return await[T](ctx, ref)
}

// Function1 is Function2 for functions of one argument.
type Function1[A, T any] struct{ *delayed.Function }

// Func1 is Func2 for functions of one argument.
func Func1[A any](fn func(context.Context, A) error, opts ...delayed.FuncOption) Function1[A, struct{}] {
	return Function1[A, struct{}]{delayed.Func(fn, opts...)}
}

// ResultFunc1 is ResultFunc2 for functions of one argument.
func ResultFunc1[A, T any](fn func(context.Context, A) (T, error), opts ...delayed.FuncOption) Function1[A, T] {
	return Function1[A, T]{delayed.Func(fn, opts...)}
}

// Delay is delayed.Queue.Delay.
func (f Function1[A, T]) Delay(q *delayed.Queue, a A) (*delayed.Ref, error) {
	return q.Delay(f.Function, a)
}

// DelayContext is delayed.Queue.DelayContext.
func (f Function1[A, T]) DelayContext(ctx context.Context, q *delayed.Queue, a A) (*delayed.Ref, error) {
	return q.DelayContext(ctx, f.Function, a)
}

// Call is delayed.Call.
func (f Function1[A, T]) Call(a A) *delayed.Task { return delayed.Call(f.Function, a) }

// Await is delayed.Await for the task of a call of f; if f has no result, it is delayed.Ref.Wait.
func (f Function1[A, T]) Await(ctx context.Context, ref *delayed.Ref) (T, error) {
	return await[T](ctx, ref)
}

// Function2 is a function of two arguments and a result of type T, struct{} if it has none. Func2 and ResultFunc2 make
// it. It is immutable and safe for concurrent use. Its zero value is no function: using it is an error that wraps
// delayed.ErrFunction.
type Function2[A, B, T any] struct{ *delayed.Function }

// Func2 makes a Function2 from a function that returns only an error. Options are those of delayed.Func. If fn or an
// option is wrong, Delay and Worker.Register return an error that wraps delayed.ErrFunction.
func Func2[A, B any](fn func(context.Context, A, B) error, opts ...delayed.FuncOption) Function2[A, B, struct{}] {
	return Function2[A, B, struct{}]{delayed.Func(fn, opts...)}
}

// ResultFunc2 is Func2 for functions that return a value and an error.
func ResultFunc2[A, B, T any](
	fn func(context.Context, A, B) (T, error), opts ...delayed.FuncOption,
) Function2[A, B, T] {
	return Function2[A, B, T]{delayed.Func(fn, opts...)}
}

// Delay is delayed.Queue.Delay.
func (f Function2[A, B, T]) Delay(q *delayed.Queue, a A, b B) (*delayed.Ref, error) {
	return q.Delay(f.Function, a, b)
}

// DelayContext is delayed.Queue.DelayContext.
func (f Function2[A, B, T]) DelayContext(ctx context.Context, q *delayed.Queue, a A, b B) (*delayed.Ref, error) {
	return q.DelayContext(ctx, f.Function, a, b)
}

// Call is delayed.Call.
func (f Function2[A, B, T]) Call(a A, b B) *delayed.Task { return delayed.Call(f.Function, a, b) }

// Await is delayed.Await for the task of a call of f; if f has no result, it is delayed.Ref.Wait.
func (f Function2[A, B, T]) Await(ctx context.Context, ref *delayed.Ref) (T, error) {
	return await[T](ctx, ref)
}

// Function3 is Function2 for functions of three arguments.
type Function3[A, B, C, T any] struct{ *delayed.Function }

// Func3 is Func2 for functions of three arguments.
func Func3[A, B, C any](
	fn func(context.Context, A, B, C) error, opts ...delayed.FuncOption,
) Function3[A, B, C, struct{}] {
	return Function3[A, B, C, struct{}]{delayed.Func(fn, opts...)}
}

// ResultFunc3 is ResultFunc2 for functions of three arguments.
func ResultFunc3[A, B, C, T any](
	fn func(context.Context, A, B, C) (T, error), opts ...delayed.FuncOption,
) Function3[A, B, C, T] {
	return Function3[A, B, C, T]{delayed.Func(fn, opts...)}
}

// Delay is delayed.Queue.Delay.
func (f Function3[A, B, C, T]) Delay(q *delayed.Queue, a A, b B, c C) (*delayed.Ref, error) {
	return q.Delay(f.Function, a, b, c)
}

// DelayContext is delayed.Queue.DelayContext.
func (f Function3[A, B, C, T]) DelayContext(
	ctx context.Context, q *delayed.Queue, a A, b B, c C,
) (*delayed.Ref, error) {
	return q.DelayContext(ctx, f.Function, a, b, c)
}

// Call is delayed.Call.
func (f Function3[A, B, C, T]) Call(a A, b B, c C) *delayed.Task {
	return delayed.Call(f.Function, a, b, c)
}

// Await is delayed.Await for the task of a call of f; if f has no result, it is delayed.Ref.Wait.
func (f Function3[A, B, C, T]) Await(ctx context.Context, ref *delayed.Ref) (T, error) {
	return await[T](ctx, ref)
}

// Function4 is Function2 for functions of four arguments.
type Function4[A, B, C, D, T any] struct{ *delayed.Function }

// Func4 is Func2 for functions of four arguments.
func Func4[A, B, C, D any](
	fn func(context.Context, A, B, C, D) error, opts ...delayed.FuncOption,
) Function4[A, B, C, D, struct{}] {
	return Function4[A, B, C, D, struct{}]{delayed.Func(fn, opts...)}
}

// ResultFunc4 is ResultFunc2 for functions of four arguments.
func ResultFunc4[A, B, C, D, T any](
	fn func(context.Context, A, B, C, D) (T, error), opts ...delayed.FuncOption,
) Function4[A, B, C, D, T] {
	return Function4[A, B, C, D, T]{delayed.Func(fn, opts...)}
}

// Delay is delayed.Queue.Delay.
func (f Function4[A, B, C, D, T]) Delay(q *delayed.Queue, a A, b B, c C, d D) (*delayed.Ref, error) {
	return q.Delay(f.Function, a, b, c, d)
}

// DelayContext is delayed.Queue.DelayContext.
func (f Function4[A, B, C, D, T]) DelayContext(
	ctx context.Context, q *delayed.Queue, a A, b B, c C, d D,
) (*delayed.Ref, error) {
	return q.DelayContext(ctx, f.Function, a, b, c, d)
}

// Call is delayed.Call.
func (f Function4[A, B, C, D, T]) Call(a A, b B, c C, d D) *delayed.Task {
	return delayed.Call(f.Function, a, b, c, d)
}

// Await is delayed.Await for the task of a call of f; if f has no result, it is delayed.Ref.Wait.
func (f Function4[A, B, C, D, T]) Await(ctx context.Context, ref *delayed.Ref) (T, error) {
	return await[T](ctx, ref)
}

// await is delayed.Await, or delayed.Ref.Wait if T stands for no result.
func await[T any](ctx context.Context, ref *delayed.Ref) (value T, err error) {
	if _, none := any(value).(struct{}); none {
		return value, ref.Wait(ctx)
	}
	return delayed.Await[T](ctx, ref)
}
