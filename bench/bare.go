package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/shamaton/msgpack/v2"
)

// bareTask is a task of the prototype: the function to call, and its arguments as MessagePack inside MessagePack.
type bareTask struct {
	FuncPath string
	Payload  []byte
}

type bareArguments struct {
	Number int64
	Text   string
}

// encodeBare encodes a task of the prototype. Encoding a number and a text never fails.
func encodeBare(number int64, text string) []byte {
	payload, err := msgpack.MarshalAsArray(&bareArguments{number, text})
	must(err)
	b, err := msgpack.MarshalAsArray(&bareTask{"main.task", payload})
	must(err)
	return b
}

// bareHandler decodes arguments and calls a function by reflection.
type bareHandler struct {
	function reflect.Value
	frames   sync.Pool
}

type bareFrame struct {
	arguments any
	values    []reflect.Value
}

func newBareHandler(function any) *bareHandler {
	h := &bareHandler{function: reflect.ValueOf(function)}
	var fields []reflect.StructField
	for i := range h.function.Type().NumIn() {
		fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: h.function.Type().In(i)})
	}
	structure := reflect.StructOf(fields)
	h.frames.New = func() any {
		p := reflect.New(structure)
		f := &bareFrame{arguments: p.Interface()}
		for i := range fields {
			f.values = append(f.values, p.Elem().Field(i))
		}
		return f
	}
	return h
}

// run calls the function for a task of encodeBare.
func (h *bareHandler) run(task []byte) {
	var t bareTask
	must(msgpack.UnmarshalAsArray(task, &t))
	f, _ := h.frames.Get().(*bareFrame)
	must(msgpack.UnmarshalAsArray(t.Payload, f.arguments))
	h.function.Call(f.values)
	h.frames.Put(f)
}

// must ends the driver if there is an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// bareFetcher claims on one connection, spreads each claim over its callers, and acknowledges with the next claim. When
// the list is empty, it waits for notifications.
type bareFetcher struct {
	conn    redis.Conn
	number  int
	handler *bareHandler

	work chan []bareItem
	acks chan []any // fields of tasks that have been run
}

// bareItem is a claimed task and its field among the claimed ones.
type bareItem struct {
	field string
	task  []byte
}

// maxAcks is how many fields one call of the script may delete.
const maxAcks = 2000

// run claims until there is an error.
func (f *bareFetcher) run() error {
	f.work, f.acks = make(chan []bareItem, 2*ceilingCallers), make(chan []any, 4096)
	defer close(f.work)
	for range ceilingCallers {
		go f.call()
	}
	outstanding := 0  // claimed tasks whose fields were not yet received
	var carried []any // fields to acknowledge with the next call
	for seq := 0; ; seq++ {
		prefix := fmt.Sprintf("w%d-%d-", f.number, seq)
		args := append([]any{ceilingList, ceilingHeld, ceilingNotify, ceilingClaim, prefix}, carried...)
		carried = nil
		for more := true; more && len(args) < maxAcks; {
			select {
			case fields := <-f.acks:
				outstanding -= len(fields)
				args = append(args, fields...)
			default:
				more = false
			}
		}
		tasks, err := redis.ByteSlices(ackClaim.Do(f.conn, args...))
		switch {
		case errors.Is(err, redis.ErrNil) && outstanding > 0:
			carried = <-f.acks
			outstanding -= len(carried)
		case errors.Is(err, redis.ErrNil):
			if _, err := f.conn.Do("BLPOP", ceilingNotify, 0); err != nil {
				return err
			}
		case err != nil:
			return err
		case len(tasks) == 1: // nothing to distribute: call the handler directly
			f.handler.run(tasks[0])
			carried = []any{prefix + "1"}
		default:
			outstanding += len(tasks)
			f.spread(prefix, tasks)
		}
	}
}

// spread gives each caller a part of a claim.
func (f *bareFetcher) spread(prefix string, tasks [][]byte) {
	per := (len(tasks) + ceilingCallers - 1) / ceilingCallers
	for i := 0; i < len(tasks); i += per {
		items := make([]bareItem, 0, per)
		for j := i; j < min(i+per, len(tasks)); j++ {
			items = append(items, bareItem{prefix + strconv.Itoa(j+1), tasks[j]})
		}
		f.work <- items
	}
}

// call runs tasks.
func (f *bareFetcher) call() {
	for items := range f.work {
		fields := make([]any, len(items))
		for i, item := range items {
			f.handler.run(item.task)
			fields[i] = item.field
		}
		f.acks <- fields
	}
}
