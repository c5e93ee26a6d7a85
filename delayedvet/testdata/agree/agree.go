// Package agree has calls that a test runs, to compare what they return with what the analyzer says about their lines.
package agree

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/typed"
)

// Call is one call: it returns the error of the library.
type Call func(q Q, w W) error

// Short names for a long table.
type (
	Q = *delayed.Queue
	W = *delayed.Worker

	options = []delayed.Option
)

type (
	userID int64
	level  uint8
	label  string
	flag   bool
	ids    []int64
	others []int64

	item struct {
		Name string
		N    int8
	}
	twin struct {
		Name string `msgpack:"name"`
		N    int8
	}
	empty  struct{}
	closed struct{ n int }
	ring   *ring
	tree   struct{ Kids []tree }
	twice  struct {
		A int
		B int `msgpack:"A"`
	}
	base    struct{ Admin bool }
	derived struct {
		base
		N int
	}
	home struct {
		base `msgpack:"-"`
		N    int
	}
	sender     interface{ Send(int) }
	mailer     struct{}
	box[T any] struct{ V T }
	custom     struct{ context.Context }
)

func (*mailer) Send(int)   {}
func (mailer) Copy(string) {}
func (*mailer) hidden(int) {}
func (*box[T]) Put(T)      {}

func none()                              {}
func integer(int)                        {}
func tiny(int8)                          {}
func byteOf(uint8)                       {}
func wide(uint64)                        {}
func two(context.Context, int64, string) {}
func text(string)                        {}
func labeled(label)                      {}
func user(userID)                        {}
func single(float32)                     {}
func double(float64)                     {}
func boolean(bool)                       {}
func bytes([]byte)                       {}
func list([]int64)                       {}
func named(ids)                          {}
func value(item)                         {}
func pointer(*item)                      {}
func table(map[string]int)               {}
func moment(time.Time)                   {}
func anything(any)                       {}
func integers(...int)                    {}
func tail(string, ...int)                {}
func anythings(...any)                   {}
func lists(...[]int)                     {}
func array([2]int)                       {}
func nothing(empty)                      {}
func channel(chan int)                   {}
func callback(func())                    {}
func reader(io.Reader)                   {}
func failed(error)                       {}
func hiddenOnly(closed)                  {}
func rings(ring)                         {}
func trees(tree)                         {}
func twices(twice)                       {}
func deriveds(derived)                   {}
func homes(home)                         {}
func floatKeys(map[float64]int)          {}
func anyKeys(map[any]int)                {}
func timeKeys(map[time.Time]int)         {}
func complexes(complex64)                {}
func address(uintptr)                    {}
func large([1 << 12]int64)               {}
func late(int, context.Context)          {}
func contexts(...context.Context)        {}
func customs(custom)                     {}
func results() (int, string)             { return 0, "" }
func errorFirst() (error, int)           { return nil, 0 }
func ownError() *delayed.ArgumentError   { return nil }
func channelResult() chan int            { return nil }
func generic[T any](T)                   {}

var (
	work   = delayed.Call(integers, 1)
	ctx    = context.Background()
	lit    = delayed.Func(func(int) {}, delayed.Name("lit"))
	method = delayed.Func((&mailer{}).Send, delayed.Name("send"))
	gen    = delayed.Func(generic[int8], delayed.Name("gen"))
	note   = typed.Func2(func(context.Context, int64, any) error { return nil }, delayed.Name("typed"))
	own    = struct{ *delayed.Function }{lit}
)

func of(_ any, err error) error { return err }

// Calls are accepted and refused.
var Calls = []Call{
	func(q Q, w W) error { return of(q.Delay(none)) },
	func(q Q, w W) error { return of(q.Delay(none, 1)) },
	func(q Q, w W) error { return of(q.Delay(integer)) },
	func(q Q, w W) error { return of(q.Delay(none, nil)) },
	func(q Q, w W) error { return of(q.Delay(integer, 1)) },
	func(q Q, w W) error { return of(q.Delay(integer, 1, 2)) },
	func(q Q, w W) error { return of(q.Delay(integer, "x")) },
	func(q Q, w W) error { return of(q.Delay(integer, 1.5)) },
	func(q Q, w W) error { return of(q.Delay(integer, 2.0)) },
	func(q Q, w W) error { return of(q.Delay(integer, nil)) },
	func(q Q, w W) error { return of(q.Delay(integer, true)) },
	func(q Q, w W) error { return of(q.Delay(integer, 'x')) },
	func(q Q, w W) error { return of(q.Delay(integer, uint64(7))) },
	func(q Q, w W) error { return of(q.Delay(integer, uint64(math.MaxUint64))) },
	func(q Q, w W) error { return of(q.Delay(integer, time.Hour == 0)) },
	func(q Q, w W) error { return of(q.Delay(integer, userID(5))) },
	func(q Q, w W) error { return of(q.Delay(integer, level(5))) },
	func(q Q, w W) error { return of(q.Delay(tiny, 127)) },
	func(q Q, w W) error { return of(q.Delay(tiny, 128)) },
	func(q Q, w W) error { return of(q.Delay(tiny, -128)) },
	func(q Q, w W) error { return of(q.Delay(tiny, -129)) },
	func(q Q, w W) error { return of(q.Delay(tiny, uint64(200))) },
	func(q Q, w W) error { return of(q.Delay(byteOf, 255)) },
	func(q Q, w W) error { return of(q.Delay(byteOf, 256)) },
	func(q Q, w W) error { return of(q.Delay(byteOf, -1)) },
	func(q Q, w W) error { return of(q.Delay(wide, uint64(math.MaxUint64))) },
	func(q Q, w W) error { return of(q.Delay(wide, -1)) },
	func(q Q, w W) error { return of(q.Delay(user, 3)) },
	func(q Q, w W) error { return of(q.Delay(user, int8(3))) },
	func(q Q, w W) error { return of(q.Delay(text, "x")) },
	func(q Q, w W) error { return of(q.Delay(text, 65)) },
	func(q Q, w W) error { return of(q.Delay(text, label("x"))) },
	func(q Q, w W) error { return of(q.Delay(text, []byte("x"))) },
	func(q Q, w W) error { return of(q.Delay(text, []rune("x"))) },
	func(q Q, w W) error { return of(q.Delay(text, "\xff")) },
	func(q Q, w W) error { return of(q.Delay(text, nil)) },
	func(q Q, w W) error { return of(q.Delay(labeled, "x")) },
	func(q Q, w W) error { return of(q.Delay(single, 1<<24)) },
	func(q Q, w W) error { return of(q.Delay(single, 1<<24+1)) },
	func(q Q, w W) error { return of(q.Delay(single, float32(1))) },
	func(q Q, w W) error { return of(q.Delay(single, 1.0)) },
	func(q Q, w W) error { return of(q.Delay(double, int64(1<<53))) },
	func(q Q, w W) error { return of(q.Delay(double, int64(1<<53+1))) },
	func(q Q, w W) error { return of(q.Delay(double, int64(math.MaxInt64))) },
	func(q Q, w W) error { return of(q.Delay(double, uint64(math.MaxUint64))) },
	func(q Q, w W) error { return of(q.Delay(double, 3)) },
	func(q Q, w W) error { return of(q.Delay(double, float32(1))) },
	func(q Q, w W) error { return of(q.Delay(double, 2.5)) },
	func(q Q, w W) error { return of(q.Delay(double, "x")) },
	func(q Q, w W) error { return of(q.Delay(boolean, flag(true))) },
	func(q Q, w W) error { return of(q.Delay(boolean, 1)) },
	func(q Q, w W) error { return of(q.Delay(bytes, []byte("x"))) },
	func(q Q, w W) error { return of(q.Delay(bytes, "x")) },
	func(q Q, w W) error { return of(q.Delay(bytes, nil)) },
	func(q Q, w W) error { return of(q.Delay(bytes, []int8{1})) },
	func(q Q, w W) error { return of(q.Delay(list, []int64{1})) },
	func(q Q, w W) error { return of(q.Delay(list, ids{1})) },
	func(q Q, w W) error { return of(q.Delay(list, others{1})) },
	func(q Q, w W) error { return of(q.Delay(list, []int{1})) },
	func(q Q, w W) error { return of(q.Delay(list, [1]int64{1})) },
	func(q Q, w W) error { return of(q.Delay(list, nil)) },
	func(q Q, w W) error { return of(q.Delay(named, []int64{1})) },
	func(q Q, w W) error { return of(q.Delay(named, others{1})) },
	func(q Q, w W) error { return of(q.Delay(value, item{})) },
	func(q Q, w W) error { return of(q.Delay(value, &item{})) },
	func(q Q, w W) error { return of(q.Delay(value, twin{})) },
	func(q Q, w W) error { return of(q.Delay(value, nil)) },
	func(q Q, w W) error {
		return of(q.Delay(value, struct {
			Name string
			N    int8
		}{}))
	},
	func(q Q, w W) error { return of(q.Delay(pointer, &item{})) },
	func(q Q, w W) error { return of(q.Delay(pointer, item{})) },
	func(q Q, w W) error { return of(q.Delay(pointer, &twin{})) },
	func(q Q, w W) error { return of(q.Delay(pointer, nil)) },
	func(q Q, w W) error { return of(q.Delay(pointer, (*item)(nil))) },
	func(q Q, w W) error { return of(q.Delay(table, map[string]int{})) },
	func(q Q, w W) error { return of(q.Delay(table, map[string]int64{})) },
	func(q Q, w W) error { return of(q.Delay(table, nil)) },
	func(q Q, w W) error { return of(q.Delay(moment, time.Time{})) },
	func(q Q, w W) error { return of(q.Delay(moment, 1)) },
	func(q Q, w W) error { return of(q.Delay(anything, nil)) },
	func(q Q, w W) error { return of(q.Delay(anything, 1)) },
	func(q Q, w W) error { return of(q.Delay(anything, item{})) },
	func(q Q, w W) error { return of(q.Delay(anything, closed{})) },
	func(q Q, w W) error { return of(q.Delay(anything, make(chan int))) },
	func(q Q, w W) error { return of(q.Delay(anything, integer)) },
	func(q Q, w W) error { return of(q.Delay(anything, ctx)) },
	func(q Q, w W) error { return of(q.Delay(anything, delayed.In(time.Hour))) },
	func(q Q, w W) error { return of(q.Delay(anything, delayed.Name("x"))) },
	func(q Q, w W) error { return of(q.Delay(anything, q)) },
	func(q Q, w W) error { return of(q.Delay(anything, w)) },
	func(q Q, w W) error { return of(q.Delay(anything, q.Ref("x"))) },
	func(q Q, w W) error { return of(q.Delay(anything, delayed.Call(none))) },
	func(q Q, w W) error { return of(q.Delay(anything, 1i)) },
	func(q Q, w W) error { return of(q.Delay(anything, uintptr(1))) },
	func(q Q, w W) error { return of(q.Delay(anything, []any{1})) },
	func(q Q, w W) error { return of(q.Delay(anything, delayed.Entry{})) },
	func(q Q, w W) error { return of(q.Delay(integers)) },
	func(q Q, w W) error { return of(q.Delay(integers, 1, 2)) },
	func(q Q, w W) error { return of(q.Delay(integers, []int{1, 2})) },
	func(q Q, w W) error { return of(q.Delay(integers, []int64{1, 2})) },
	func(q Q, w W) error { return of(q.Delay(integers, 1, []int{2})) },
	func(q Q, w W) error { return of(q.Delay(integers, nil)) },
	func(q Q, w W) error { return of(q.Delay(integers, []int(nil))) },
	func(q Q, w W) error { return of(q.Delay(tail)) },
	func(q Q, w W) error { return of(q.Delay(tail, "x")) },
	func(q Q, w W) error { return of(q.Delay(tail, "x", 1, "y")) },
	func(q Q, w W) error { return of(q.Delay(tail, "x", []int{1})) },
	func(q Q, w W) error { return of(q.Delay(tail, "x", int8(1), uint64(2))) },
	func(q Q, w W) error { return of(q.Delay(tail, "x", 1, nil)) },
	func(q Q, w W) error { return of(q.Delay(anythings, 1, ctx)) },
	func(q Q, w W) error { return of(q.Delay(anythings, 1, "x", nil)) },
	func(q Q, w W) error { return of(q.Delay(anythings, []any{1})) },
	func(q Q, w W) error { return of(q.Delay(lists, []int{1})) },
	func(q Q, w W) error { return of(q.Delay(lists, [][]int{{1}})) },
	func(q Q, w W) error { return of(q.Delay(lists, []string{"x"})) },
	func(q Q, w W) error { return of(q.Delay(array, [2]int{})) },
	func(q Q, w W) error { return of(q.Delay(array, [3]int{})) },
	func(q Q, w W) error { return of(q.Delay(array, []int{1, 2})) },
	func(q Q, w W) error { return of(q.Delay(nothing, empty{})) },
	func(q Q, w W) error { return of(q.Delay(two, 1, "en")) },
	func(q Q, w W) error { return of(q.Delay(two, "1", "en")) },
	func(q Q, w W) error { return of(q.Delay(two, ctx, 1, "en")) },
	func(q Q, w W) error { return of(q.Delay(two, 1)) },
	func(q Q, w W) error { return of(q.Delay(channel, nil)) },
	func(q Q, w W) error { return of(q.Delay(callback, nil)) },
	func(q Q, w W) error { return of(q.Delay(reader, nil)) },
	func(q Q, w W) error { return of(q.Delay(failed, nil)) },
	func(q Q, w W) error { return of(q.Delay(hiddenOnly, closed{})) },
	func(q Q, w W) error { return of(q.Delay(rings, nil)) },
	func(q Q, w W) error { return of(q.Delay(trees, tree{})) },
	func(q Q, w W) error { return of(q.Delay(twices, twice{})) },
	func(q Q, w W) error { return of(q.Delay(deriveds, derived{})) },
	func(q Q, w W) error { return of(q.Delay(homes, home{})) },
	func(q Q, w W) error { return of(q.Delay(floatKeys, nil)) },
	func(q Q, w W) error { return of(q.Delay(anyKeys, nil)) },
	func(q Q, w W) error { return of(q.Delay(timeKeys, nil)) },
	func(q Q, w W) error { return of(q.Delay(complexes, 1i)) },
	func(q Q, w W) error { return of(q.Delay(address, uintptr(1))) },
	func(q Q, w W) error { return of(q.Delay(large, [1 << 12]int64{})) },
	func(q Q, w W) error { return of(q.Delay(late, 1)) },
	func(q Q, w W) error { return of(q.Delay(contexts)) },
	func(q Q, w W) error { return of(q.Delay(customs, nil)) },
	func(q Q, w W) error { return of(q.Delay(results)) },
	func(q Q, w W) error { return of(q.Delay(errorFirst)) },
	func(q Q, w W) error { return of(q.Delay(ownError)) },
	func(q Q, w W) error { return of(q.Delay(channelResult)) },
	func(q Q, w W) error { return of(q.Delay(nil)) },
	func(q Q, w W) error { return of(q.Delay((func())(nil))) },
	func(q Q, w W) error { return of(q.Delay(42)) },
	func(q Q, w W) error { return of(q.Delay("example.com/app.F")) },
	func(q Q, w W) error { return of(q.Delay(ctx)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Call(none))) },
	func(q Q, w W) error { return of(q.Delay(func() {})) },
	func(q Q, w W) error { return of(q.Delay(generic[int], 1)) },
	func(q Q, w W) error { return of(q.Delay((&mailer{}).Send, 1)) },
	func(q Q, w W) error { return of(q.Delay((*mailer).Send, 1)) },
	func(q Q, w W) error { return of(q.Delay((*mailer).Send, "x")) },
	func(q Q, w W) error { return of(q.Delay(mailer.Copy, "x")) },
	func(q Q, w W) error { return of(q.Delay((*mailer).Copy, "x")) },
	func(q Q, w W) error { return of(q.Delay((*mailer).hidden, 1)) },
	func(q Q, w W) error { return of(q.Delay(sender.Send, 1)) },
	func(q Q, w W) error { return of(q.Delay((*box[int]).Put, 1)) },
	func(q Q, w W) error { return of(q.Delay((*delayed.Function)(nil))) },
	func(q Q, w W) error { return of(q.Delay(&delayed.Function{})) },
	func(q Q, w W) error { return of(q.Delay(lit, 1)) },
	func(q Q, w W) error { return of(q.Delay(lit, "x")) },
	func(q Q, w W) error { return of(q.Delay(method, 1)) },
	func(q Q, w W) error { return of(q.Delay(method, "x")) },
	func(q Q, w W) error { return of(q.Delay(gen, 127)) },
	func(q Q, w W) error { return of(q.Delay(gen, 128)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(nil))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(delayed.Func(none)))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(integer, delayed.Optional(1)), 1)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(integer, delayed.Optional(1)))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(integer, delayed.Optional(2)), 1)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(integer, delayed.Optional(-1)), 1)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(none, delayed.Name("")))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(none, delayed.Name("a:b")))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(none, delayed.Name("a\nb")))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(none, delayed.Name("a b")))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(none, delayed.Alias("a:b")))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(channelResult, delayed.KeepResult(time.Hour)))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(channelResult, delayed.KeepResult(0)))) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func((*mailer).hidden, delayed.Name("h")), 1)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(sender.Send, delayed.Name("s")), 1)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(func(chan int) {}, delayed.Name("c")), nil)) },
	func(q Q, w W) error { return of(q.Delay(note, 1, "a")) },
	func(q Q, w W) error { return of(q.Delay(note, 1)) },
	func(q Q, w W) error { return of(q.Delay(note.Function, "a", "a")) },
	func(q Q, w W) error { return of(q.Delay(own, 1)) },
	func(q Q, w W) error { return of(q.Delay(delayed.Func(note), 1, "a")) },
	func(q Q, w W) error { return of(q.Delay(typed.Function1[int, struct{}]{}, 1)) },
	func(q Q, w W) error { return of(q.Delay(typed.Func1[int](nil), 1)) },
	func(q Q, w W) error { return of(note.Delay(q, 1, "a")) },
	func(q Q, w W) error { return of(note.Delay(q, 1, make(chan int))) },
	func(q Q, w W) error { return of(note.DelayContext(ctx, q, 1, ctx)) },
	func(q Q, w W) error { return of(note.DelayContext(ctx, q, 1, delayed.Front())) },
	func(q Q, w W) error { return of(note.Delay(q.With(delayed.Group("g")), 1, nil)) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, note.Call(1, "\xff"))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, note.Call(1, "a"))) },
	func(q Q, w W) error { return of(typed.Func0(func(context.Context) error { return nil }).Delay(q)) },
	func(q Q, w W) error {
		return of(typed.Func1(func(context.Context, chan int) error { return nil }).Delay(q, nil))
	},
	func(q Q, w W) error { return w.Register(note, lit) },
	func(q Q, w W) error { return w.Register(note, delayed.Func(text, delayed.Name("typed"))) },
	func(q Q, w W) error { return of(q.With(delayed.In(60)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.In(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.In(-5)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.In(time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Timeout(30)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Timeout(-1)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Timeout(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.TTL(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.TTL(5)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.TTL(time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Retention(60_000)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.KeepResult(3600)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.KeepResult(-1)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Backoff(5, 10)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Backoff(time.Second, -1)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Backoff(0, time.Second)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.MaxBackoff(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.MaxBackoff(300)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Debounce(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Debounce(time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Unique(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Unique(3600)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Unique(time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.UniqueKey("k", 60)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.UniqueKey("k", time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Front(), delayed.In(time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Front(), delayed.In(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Front(), delayed.Debounce(time.Hour)).Delay(none)) },
	func(q Q, w W) error {
		return of(q.With(delayed.Debounce(time.Hour), delayed.In(time.Hour)).Delay(none))
	},
	func(q Q, w W) error { return of(q.With(delayed.Debounce(time.Hour), delayed.In(0)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.KeepResult(time.Hour)).Delay(none)) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(integers, 1)) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(tail, "x")) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(bytes, nil)) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(list, nil)) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(anythings, 1)) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(array, [2]int{})) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(value, item{})) },
	func(q Q, w W) error { return of(q.With(delayed.Group("g")).Delay(anything, 1)) },
	func(q Q, w W) error { return of(q.With(delayed.KeepResult(time.Hour)).Delay(channelResult)) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.Call(integer, 1))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.Call(integer, "x"))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.Call(ctx, integer, 1))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a.b", 1))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("", 1))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a:b", 1))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a.b", ctx))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a.b", make(chan int)))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a.b", nil, item{}))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a.b", closed{}))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewGoTask("a.b", "\xff"))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewPyTask("m:f", nil, nil))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewPyTask("m.f", nil, nil))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewPyTask("m:", nil, nil))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewPyTask("m:f:g", nil, nil))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewPyTask("m:f", []any{ctx}, nil))) },
	func(q Q, w W) error { return of(q.Enqueue(ctx, delayed.NewPyTask("m:f", []any{make(chan int)}, nil))) },
	func(q Q, w W) error {
		return of(q.Enqueue(ctx, delayed.NewPyTask("m:f", nil, map[string]any{"a": delayed.In(1 << 40)})))
	},
	func(q Q, w W) error {
		return of(q.Enqueue(ctx, delayed.NewPyTask("m:f", []any{1}, map[string]any{"a": nil})))
	},
	func(q Q, w W) error { return of(q.DelayMany(ctx, delayed.Call(integer, 1), delayed.Call(text, 1))) },
	func(q Q, w W) error { return w.Register(integer) },
	func(q Q, w W) error { return w.Register(integer, text) },
	func(q Q, w W) error { return w.Register(integer, integer) },
	func(q Q, w W) error { return w.Register(channel) },
	func(q Q, w W) error { return w.Register((*mailer).Send) },
	func(q Q, w W) error { return w.Register((&mailer{}).Send) },
	func(q Q, w W) error { return w.Register(func() {}) },
	func(q Q, w W) error { return w.Register(generic[int]) },
	func(q Q, w W) error { return w.Register(lit, method, gen) },
	func(q Q, w W) error { return w.Register(nil) },
	func(q Q, w W) error { return w.Register(42) },
	func(q Q, w W) error { return w.Register("a.b") },
	func(q Q, w W) error {
		return w.Register(delayed.Func(integer, delayed.Name("x")), delayed.Func(text, delayed.Name("x")))
	},
	func(q Q, w W) error { return w.Register(delayed.Func((&mailer{}).Send, delayed.Name("m"))) },
	func(q Q, w W) error { return w.Register(delayed.Func((*mailer).Send, delayed.Name("m"))) },
	func(q Q, w W) error { return w.Register(results) },
	func(q Q, w W) error { return w.Register(homes) },
	func(q Q, w W) error { return w.Register(late) },
	func(q Q, w W) error { return w.RegisterMethods(&mailer{}) },
	func(q Q, w W) error { return w.RegisterMethods(mailer{}) },
	func(q Q, w W) error { return w.RegisterMethods(nil) },
	func(q Q, w W) error { return w.RegisterMethods(item{}) },
	func(q Q, w W) error { return w.RegisterMethods((*mailer)(nil)) },
	func(q Q, w W) error { return w.RegisterMethods(closed{}) },
	func(q Q, w W) error { return w.RegisterMethods(42) },
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.In(time.Hour)}})
	},
	func(q Q, w W) error { return set(q, delayed.Entry{Task: work, Options: options{delayed.In(0)}}) },
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.Deadline(time.Now())}})
	},
	func(q Q, w W) error { return set(q, delayed.Entry{Task: work, Options: options{delayed.TaskID("x")}}) },
	func(q Q, w W) error { return set(q, delayed.Entry{Task: work, Options: options{delayed.Front()}}) },
	func(q Q, w W) error { return set(q, delayed.Entry{Task: work, Options: options{delayed.Group("g")}}) },
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.Unique(time.Hour)}})
	},
	func(q Q, w W) error { return set(q, delayed.Entry{Task: work, Options: options{delayed.UntilStart()}}) },
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.OnConflict(delayed.ConflictSkip)}})
	},
	func(q Q, w W) error { return set(q, delayed.Entry{Task: work, Options: options{delayed.MaxRetry(1)}}) },
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.TTL(time.Hour)}})
	},
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.Debounce(time.Hour)}})
	},
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.RetryUntil(time.Now())}})
	},
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: work, Options: options{delayed.Header("k", "v")}})
	},
	func(q Q, w W) error {
		return set(q, delayed.Entry{Task: delayed.Call(delayed.Func(none, delayed.Unique(time.Hour)))})
	},
}

// set sets a periodic entry.
func set(q Q, e delayed.Entry) error {
	e.Name, e.Spec = "e", "@daily"
	return q.Periodic().Set(ctx, e)
}
