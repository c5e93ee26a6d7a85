// Package functions has func values that can and that cannot be delayed.
package functions

import (
	"context"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

type sender interface{ Copy(string) }

type box[T any] struct{ V T }

func (b *box[T]) Put(v T) { b.V = v }

type secret struct {
	ID   int
	note string
}

type guarded struct {
	ID int
	mu sync.Mutex
	_  int
}

type tagged struct {
	ID   int
	note string `msgpack:"-"`
}

type opaque struct{ n int }

type base struct{ Admin bool }

type derived struct {
	base
	ID int
}

type link struct {
	ID   int
	Next *link
}

func channel(chan int)                          {}
func callback(func())                           {}
func reader(io.Reader)                          {}
func failure(error)                             {}
func address(*url.URL)                          {}
func complexes(complex128)                      {}
func opaques([]opaque)                          {}
func secrets(map[string]*secret)                {}
func guards(*guarded)                           {}
func tags(tagged)                               {}
func deriveds(derived)                          {}
func links(link)                                {}
func keys(map[float64]string)                   {}
func big([1 << 15]byte)                         {}
func late(int, context.Context)                 {}
func contexts(context.Context, context.Context) {}
func two() (int, string)                        { return 0, "" }
func three() (int, string, error)               { return 0, "", nil }
func own() *delayed.ArgumentError               { return nil }
func result() (chan int, error)                 { return nil, nil }
func both() (any, any)                          { return fn, 1 }
func fn(int)                                    {}

func values(q *delayed.Queue, m *mail.Mailer, v mail.Mailer, s sender, given func(int), list []func(int)) (err error) {
	n := 0
	literal := func(int) { n++ }
	_, err = q.Delay((*mail.Mailer).Send, 42)
	_, err = q.Delay(mail.Mailer.Copy, "x")
	_, err = q.Delay(given, 1)
	_, err = q.Delay(list[0], 1)
	_, err = q.Delay(both())
	_, err = q.Delay(func(int) {}, 1)          // want `function cannot be delayed: function literal: expected a function declared at package level or a method expression, found a function literal; wrap it with Func and Name on both sides`
	_, err = q.Delay(literal, 1)               // want `found a function literal`
	_, err = q.Delay(m.Send, 42)               // want `example.com/app/mail.\(\*Mailer\).Send: expected .* found a method value`
	_, err = q.Delay(v.Copy, "x")              // want `found a method value`
	_, err = q.Delay(s.Copy, "x")              // want `found a method value`
	_, err = q.Delay(sender.Copy, "x")         // want `found a method expression on an interface; give the method of the type that implements it`
	_, err = q.Delay(mail.Sum[int], 1, 2)      // want `mail.Sum: expected .* found an instance of a generic function`
	_, err = q.Delay((*box[int]).Put, 1)       // want `found a method expression on an instance of a generic type`
	_, err = q.Delay(nil)                      // want `nil: expected a function, found nil`
	_, err = q.Delay((func())(nil))            // want `found a nil func\(\)`
	_, err = q.Delay("mail.Welcome", 42)       // want `expected a function, found a string; give the function itself; NewGoTask`
	_, err = q.Delay(mail.Welcome(nil, 1, "")) // the error may hold anything
	_, err = q.Delay(42)                       // want `expected a function, found a value of type int`
	_, err = q.Delay(&delayed.Function{})      // want `found a zero Function; call Func`
	return err
}

func signatures(q *delayed.Queue) (err error) {
	_, err = q.Delay(channel, nil)  // want `functions.channel: expected parameters that can travel, found parameter 1: chan int cannot travel in a task`
	_, err = q.Delay(callback, nil) // want `func\(\) cannot travel`
	_, err = q.Delay(reader, nil)   // want `io.Reader cannot travel in a task: only an empty interface`
	_, err = q.Delay(failure, nil)  // want `error cannot travel in a task: send its text`
	_, err = q.Delay(address, nil)  // want `url.Userinfo \(in \*url.URL at .User\) cannot travel in a task: it has no exported field`
	_, err = q.Delay(complexes, 1i) // want `send its two parts as floats`
	_, err = q.Delay(opaques, nil)  // want `functions.opaque \(in \[\]functions.opaque at \[\]\) cannot travel in a task: it has no exported field`
	_, err = q.Delay(secrets, nil)  // want `expected parameters that travel whole, found parameter 1: field note of functions.secret is not exported, so it arrives as its zero value`
	_, err = q.Delay(guards, nil)
	_, err = q.Delay(tags, tagged{})
	_, err = q.Delay(links, link{})
	_, err = q.Delay(deriveds, derived{}) // want `the fields of an embedded struct that is not exported would be lost`
	_, err = q.Delay(keys, nil)           // want `keys of a map can be strings, integers or booleans`
	_, err = q.Delay(big, nil)            // want `take a pointer or a slice`
	_, err = q.Delay(late, 1)             // want `expected a context as the first parameter or none, found context.Context; move it to the front`
	_, err = q.Delay(contexts)            // want `move it to the front`
	_, err = q.Delay(two)                 // want `expected no result, error, T or \(T, error\), found \(int, string\)`
	_, err = q.Delay(three)               // want `found \(int, string, error\)`
	_, err = q.Delay(own)                 // want `return error itself`
	_, err = q.Delay(result)
	_, err = q.With(delayed.KeepResult(time.Hour)).Delay(result) // want `expected a result that can travel, because KeepResult is given`
	return err
}

var (
	_ = delayed.Func(fn, delayed.Name("x"), delayed.Optional(1))
	_ = delayed.Func(fn, delayed.Optional(2))  // want `expected Optional of 0 to 1, as the function takes so many arguments, found 2`
	_ = delayed.Func(fn, delayed.Name(""))     // want `expected a path that tasks can carry, found an empty one; choose another Name`
	_ = delayed.Func(fn, delayed.Name("a:b"))  // want `which marks Python functions`
	_ = delayed.Func(fn, delayed.Alias("a:b")) // want `choose another Alias`
	_ = delayed.Func(func(int) {})             // want `found a function literal`
	_ = delayed.Func(func(int) {}, delayed.Name("lit"))
	_ = delayed.Func(delayed.Func(fn))                                           // want `found a \*Function; give all options in one call of Func`
	_ = delayed.Func(result, delayed.KeepResult(time.Hour))                      // want `because KeepResult is given`
	_ = delayed.Func(fn, delayed.Backoff(time.Second), delayed.BackoffFunc(nil)) // want `expected Backoff or BackoffFunc, found both`
	_ = delayed.Func(fn, options()...)
)

func options() []delayed.FuncOption { return nil }

func named(q *delayed.Queue, m *mail.Mailer) (err error) {
	lit := delayed.Func(func(n int) {}, delayed.Name("lit"))
	bound := delayed.Func(m.Send, delayed.Name("send"))
	wrong := delayed.Func(func(n int) {}) // want `found a function literal`
	open := delayed.Func(func(n int) {}, options()...)
	_, err = q.Delay(lit, "x")   // want `lit: argument 1: expected int, found string`
	_, err = q.Delay(bound, "x") // want `send: argument 1: expected int64, found string`
	_, err = q.Delay(wrong, "x")
	_, err = q.Delay(open, "x") // want `argument 1: expected int, found string`
	_, err = q.Delay(open, 1)
	return err
}

func local(q *delayed.Queue) error {
	type here struct{ base }
	_, err := q.Delay((*promoter).Copy, "x")
	return err
}

type promoter struct{ *mail.Mailer }

func (*promoter) hidden(int) {}

func unexported(q *delayed.Queue) error {
	_, err := q.Delay((*promoter).hidden, 1) // want `expected an exported method, found method hidden; export it, because RegisterMethods binds no others`
	return err
}

func registered(w *delayed.Worker, m *mail.Mailer) (err error) {
	err = w.Register(mail.Welcome, mail.Digest)
	err = w.Register(mail.Welcome, mail.Welcome) // want `expected a path of its own, found one that is taken already`
	err = w.Register((*mail.Mailer).Send)        // want `found a method expression, whose receiver is missing; give the receiver to RegisterMethods`
	err = w.Register(m.Send)                     // want `found a method value`
	err = w.Register(secrets)                    // want `field note of functions.secret is not exported`
	err = w.RegisterMethods(m)
	err = w.RegisterMethods(nil)      // want `receiver: expected a value with methods, found nil`
	err = w.RegisterMethods(opaque{}) // want `functions.opaque: expected an exported method with an accepted signature, found none among 0`
	return err
}

func grouped(q *delayed.Queue) (err error) {
	_, err = q.With(delayed.Group("g")).Delay(mail.Index, "a", 1)
	_, err = q.With(delayed.Group("g")).Delay(mail.Welcome, 1, "en") // want `mail.Welcome: expected a variadic function or one whose last parameter is a slice other than \[\]byte, for Group`
	all := q.With(delayed.Group("g"))
	_, err = all.Delay(mail.Digest)                                                             // want `for Group`
	_, err = q.With(delayed.Front(), delayed.In(time.Hour)).Delay(mail.Digest)                  // want `Front with In, At or Debounce`
	_, err = q.With(delayed.Debounce(time.Hour)).With(delayed.In(time.Hour)).Delay(mail.Digest) // want `Debounce with In or At`
	return err
}
