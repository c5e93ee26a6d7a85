package main

import (
	"errors"
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
	if err != nil {
		panic(err)
	}
	b, err := msgpack.MarshalAsArray(&bareTask{"main.task", payload})
	if err != nil {
		panic(err)
	}
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

func (h *bareHandler) run(task []byte) error {
	var t bareTask
	if err := msgpack.UnmarshalAsArray(task, &t); err != nil {
		return err
	}
	f, _ := h.frames.Get().(*bareFrame)
	if err := msgpack.UnmarshalAsArray(t.Payload, f.arguments); err != nil {
		return err
	}
	h.function.Call(f.values)
	h.frames.Put(f)
	return nil
}

// bareFetcher claims on one connection, spreads each claim over its callers, and acknowledges with the next claim.
type bareFetcher struct {
	conn           redis.Conn
	script         *redis.Script // ackClaim
	name           string        // prefix of the names of its claims
	claim, callers int
	handler        *bareHandler
	waits          bool // whether it waits for notifications when the list is empty; else it ends then
}

// bareItem is a claimed task and its field among the claimed ones.
type bareItem struct {
	field string
	task  []byte
}

// maxAcks is how many fields one call of the script may delete.
const maxAcks = 2000

// run claims until the list is empty, or for ever if the fetcher waits. It has acknowledged everything when it returns
// nil.
func (f *bareFetcher) run() error {
	work := make(chan []bareItem, 2*f.callers)
	acks := make(chan []string, 4096)
	failed := make(chan error, f.callers)
	for range f.callers {
		go func() {
			for items := range work {
				fields := make([]string, len(items))
				for i, item := range items {
					if err := f.handler.run(item.task); err != nil {
						failed <- err
						return
					}
					fields[i] = item.field
				}
				acks <- fields
			}
		}()
	}
	defer close(work)
	outstanding := 0     // claimed tasks whose fields were not yet received
	var carried []string // fields to acknowledge with the next call
	for seq := 0; ; seq++ {
		prefix := f.name + strconv.Itoa(seq) + "-"
		args := appendStrings([]any{ceilingList, ceilingHeld, ceilingNotify, f.claim, prefix}, carried)
		carried = nil
		for more := true; more && len(args) < maxAcks; {
			select {
			case fields := <-acks:
				outstanding -= len(fields)
				args = appendStrings(args, fields)
			case err := <-failed:
				return err
			default:
				more = false
			}
		}
		tasks, err := redis.ByteSlices(f.script.Do(f.conn, args...))
		switch {
		case errors.Is(err, redis.ErrNil) && outstanding > 0:
			select {
			case carried = <-acks:
				outstanding -= len(carried)
			case err := <-failed:
				return err
			}
			continue
		case errors.Is(err, redis.ErrNil) && !f.waits:
			return nil
		case errors.Is(err, redis.ErrNil):
			if _, err := f.conn.Do("BLPOP", ceilingNotify, 0); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if len(tasks) == 1 && f.waits { // nothing to distribute: call the handler directly
			if err := f.handler.run(tasks[0]); err != nil {
				return err
			}
			carried = []string{prefix + "1"}
			continue
		}
		outstanding += len(tasks)
		per := max(1, (len(tasks)+f.callers-1)/f.callers)
		for i := 0; i < len(tasks); i += per {
			items := make([]bareItem, 0, per)
			for j := i; j < min(i+per, len(tasks)); j++ {
				items = append(items, bareItem{prefix + strconv.Itoa(j+1), tasks[j]})
			}
			select {
			case work <- items:
			case err := <-failed:
				return err
			}
		}
	}
}

func appendStrings(args []any, values []string) []any {
	for _, v := range values {
		args = append(args, v)
	}
	return args
}
