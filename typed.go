package delayed

import "context"

// The functions and types of this file are for those who want the compiler to check arguments and results. They take
// functions with a context first, up to four arguments, and an error or a value and an error last; all others keep
// Queue.Delay, which checks the same when it is called.
//
//	var Welcome = delayed.Func2(mail.Welcome) // func(ctx context.Context, userID int64, lang string) error
//
//	ref, err := Welcome.Delay(q, 42, "en")
//	err = w.Register(Welcome)

// Typed0 is Typed2 for functions of no argument.
type Typed0[T any] struct{ *Function }

// Func0 is Func2 for functions of no argument.
func Func0(fn func(context.Context) error, opts ...FuncOption) Typed0[struct{}] {
	return Typed0[struct{}]{Func(fn, opts...)}
}

// ResultFunc0 is ResultFunc2 for functions of no argument.
func ResultFunc0[T any](fn func(context.Context) (T, error), opts ...FuncOption) Typed0[T] {
	return Typed0[T]{Func(fn, opts...)}
}

// Delay is Queue.Delay.
func (f Typed0[T]) Delay(q *Queue) (*Ref, error) { return q.Delay(f.Function) }

// DelayContext is Queue.DelayContext.
func (f Typed0[T]) DelayContext(ctx context.Context, q *Queue) (*Ref, error) {
	return q.DelayContext(ctx, f.Function)
}

// Call is the function Call.
func (f Typed0[T]) Call() *Task { return Call(f.Function) }

// Await is the function Await for the task of a call of f; if f has no result, it is Ref.Wait.
func (f Typed0[T]) Await(ctx context.Context, ref *Ref) (T, error) { return await[T](ctx, ref) }

// Typed1 is Typed2 for functions of one argument.
type Typed1[A, T any] struct{ *Function }

// Func1 is Func2 for functions of one argument.
func Func1[A any](fn func(context.Context, A) error, opts ...FuncOption) Typed1[A, struct{}] {
	return Typed1[A, struct{}]{Func(fn, opts...)}
}

// ResultFunc1 is ResultFunc2 for functions of one argument.
func ResultFunc1[A, T any](fn func(context.Context, A) (T, error), opts ...FuncOption) Typed1[A, T] {
	return Typed1[A, T]{Func(fn, opts...)}
}

// Delay is Queue.Delay.
func (f Typed1[A, T]) Delay(q *Queue, a A) (*Ref, error) { return q.Delay(f.Function, a) }

// DelayContext is Queue.DelayContext.
func (f Typed1[A, T]) DelayContext(ctx context.Context, q *Queue, a A) (*Ref, error) {
	return q.DelayContext(ctx, f.Function, a)
}

// Call is the function Call.
func (f Typed1[A, T]) Call(a A) *Task { return Call(f.Function, a) }

// Await is the function Await for the task of a call of f; if f has no result, it is Ref.Wait.
func (f Typed1[A, T]) Await(ctx context.Context, ref *Ref) (T, error) { return await[T](ctx, ref) }

// Typed2 is a function of two arguments and a result of type T, struct{} if it has none. Func2 and ResultFunc2 make it.
// It is immutable and safe for concurrent use. It can be given to everything that takes a *Function; its zero value
// cannot be used.
type Typed2[A, B, T any] struct{ *Function }

// Func2 makes a Typed2 from a function that returns only an error. Options are those of Func. What is wrong with fn or
// an option is an error of Delay and Register.
func Func2[A, B any](fn func(context.Context, A, B) error, opts ...FuncOption) Typed2[A, B, struct{}] {
	return Typed2[A, B, struct{}]{Func(fn, opts...)}
}

// ResultFunc2 is Func2 for functions that return a value and an error.
func ResultFunc2[A, B, T any](fn func(context.Context, A, B) (T, error), opts ...FuncOption) Typed2[A, B, T] {
	return Typed2[A, B, T]{Func(fn, opts...)}
}

// Delay is Queue.Delay.
func (f Typed2[A, B, T]) Delay(q *Queue, a A, b B) (*Ref, error) { return q.Delay(f.Function, a, b) }

// DelayContext is Queue.DelayContext.
func (f Typed2[A, B, T]) DelayContext(ctx context.Context, q *Queue, a A, b B) (*Ref, error) {
	return q.DelayContext(ctx, f.Function, a, b)
}

// Call is the function Call.
func (f Typed2[A, B, T]) Call(a A, b B) *Task { return Call(f.Function, a, b) }

// Await is the function Await for the task of a call of f; if f has no result, it is Ref.Wait.
func (f Typed2[A, B, T]) Await(ctx context.Context, ref *Ref) (T, error) { return await[T](ctx, ref) }

// Typed3 is Typed2 for functions of three arguments.
type Typed3[A, B, C, T any] struct{ *Function }

// Func3 is Func2 for functions of three arguments.
func Func3[A, B, C any](fn func(context.Context, A, B, C) error, opts ...FuncOption) Typed3[A, B, C, struct{}] {
	return Typed3[A, B, C, struct{}]{Func(fn, opts...)}
}

// ResultFunc3 is ResultFunc2 for functions of three arguments.
func ResultFunc3[A, B, C, T any](
	fn func(context.Context, A, B, C) (T, error), opts ...FuncOption,
) Typed3[A, B, C, T] {
	return Typed3[A, B, C, T]{Func(fn, opts...)}
}

// Delay is Queue.Delay.
func (f Typed3[A, B, C, T]) Delay(q *Queue, a A, b B, c C) (*Ref, error) {
	return q.Delay(f.Function, a, b, c)
}

// DelayContext is Queue.DelayContext.
func (f Typed3[A, B, C, T]) DelayContext(ctx context.Context, q *Queue, a A, b B, c C) (*Ref, error) {
	return q.DelayContext(ctx, f.Function, a, b, c)
}

// Call is the function Call.
func (f Typed3[A, B, C, T]) Call(a A, b B, c C) *Task { return Call(f.Function, a, b, c) }

// Await is the function Await for the task of a call of f; if f has no result, it is Ref.Wait.
func (f Typed3[A, B, C, T]) Await(ctx context.Context, ref *Ref) (T, error) {
	return await[T](ctx, ref)
}

// Typed4 is Typed2 for functions of four arguments.
type Typed4[A, B, C, D, T any] struct{ *Function }

// Func4 is Func2 for functions of four arguments.
func Func4[A, B, C, D any](
	fn func(context.Context, A, B, C, D) error, opts ...FuncOption,
) Typed4[A, B, C, D, struct{}] {
	return Typed4[A, B, C, D, struct{}]{Func(fn, opts...)}
}

// ResultFunc4 is ResultFunc2 for functions of four arguments.
func ResultFunc4[A, B, C, D, T any](
	fn func(context.Context, A, B, C, D) (T, error), opts ...FuncOption,
) Typed4[A, B, C, D, T] {
	return Typed4[A, B, C, D, T]{Func(fn, opts...)}
}

// Delay is Queue.Delay.
func (f Typed4[A, B, C, D, T]) Delay(q *Queue, a A, b B, c C, d D) (*Ref, error) {
	return q.Delay(f.Function, a, b, c, d)
}

// DelayContext is Queue.DelayContext.
func (f Typed4[A, B, C, D, T]) DelayContext(ctx context.Context, q *Queue, a A, b B, c C, d D) (*Ref, error) {
	return q.DelayContext(ctx, f.Function, a, b, c, d)
}

// Call is the function Call.
func (f Typed4[A, B, C, D, T]) Call(a A, b B, c C, d D) *Task { return Call(f.Function, a, b, c, d) }

// Await is the function Await for the task of a call of f; if f has no result, it is Ref.Wait.
func (f Typed4[A, B, C, D, T]) Await(ctx context.Context, ref *Ref) (T, error) {
	return await[T](ctx, ref)
}

// await is Await, or Ref.Wait if T says that there is no result.
func await[T any](ctx context.Context, ref *Ref) (value T, err error) {
	if _, none := any(value).(struct{}); none {
		return value, ref.Wait(ctx)
	}
	return Await[T](ctx, ref)
}
