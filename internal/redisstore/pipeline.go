package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// slotPage bounds the queues of one slot that one script looks at.
const slotPage = 200

// sentTogether bounds the calls of a script that are sent before their answers are read. Other clients of the server
// are served between them.
const sentTogether = 200

// Answer is what Redis said to one of several calls that were sent together.
type Answer[T any] struct {
	Value T
	Err   error // of Script.Explain
}

// evalEach runs a script once for each of the stores, which are of one slot, and returns the answers in their order. It
// sends the calls together: ten thousand that wait for each other take seconds. Like eval it runs none twice, unless
// Redis answers with an error: then it calls again, alone. call returns the keys and arguments for a store.
func evalEach[T any](
	ctx context.Context, script string, stores []*Store, read func(any, error) (T, error),
	call func(i int) (keys []string, args []any),
) []Answer[T] {
	answers := make([]Answer[T], len(stores))
	for from := 0; from < len(stores); from += sentTogether {
		page := answers[from:min(from+sentTogether, len(stores))]
		err := sendEach(ctx, script, stores[from].Src, page, read, func(i int) ([]string, []any) {
			return call(from + i)
		})
		if err == nil {
			continue
		}
		for i := range answers[from+len(page):] { // nothing was sent of these
			answers[from+len(page)+i].Err = err
		}
		break
	}
	return answers
}

// sendEach is evalEach for a page. An error says that there is no connection any more; the answers of the page say so
// too, where they are missing.
func sendEach[T any](
	ctx context.Context, script string, src Source, page []Answer[T], read func(any, error) (T, error),
	call func(i int) (keys []string, args []any),
) error {
	alone := func(i int) {
		keys, args := call(i)
		page[i].Value, page[i].Err = read(evalOn(ctx, src, script, keys, args...))
	}
	if len(page) == 1 {
		alone(0)
		return nil
	}
	sc := Scripts[script]
	replies, err := sendPage(ctx, src, len(page), sc.Explain, func(i int) (string, string, []any) {
		keys, args := call(i)
		return keys[0], "EVALSHA", sc.evalshaArgs(keys, args)
	})
	for i := range page {
		var refused redis.Error
		switch {
		case i >= len(replies):
			page[i].Err = err
		case errors.As(replies[i].Err, &refused):
			alone(i) // Redis does not know the script yet, or the connection's node does not have the key
		default:
			page[i].Value, page[i].Err = read(replies[i].Value, sc.explainEach(replies[i].Err))
		}
	}
	return err
}

// explainEach is Explain, for no error too.
func (s *Script) explainEach(err error) error {
	if err == nil {
		return nil
	}
	return s.Explain(err)
}

// sendPage sends n commands on one connection, which is that of the first one's key, and reads the answers. With an
// error it returns those that have come.
func sendPage(
	ctx context.Context, src Source, n int, explain func(error) error,
	command func(i int) (key, name string, args []any),
) (replies []Answer[any], err error) {
	if bounded, ok := src.(*BoundedSource); ok {
		if err := bounded.acquire(ctx); err != nil {
			return nil, err
		}
		defer bounded.release()
	}
	key, name, args := command(0)
	conn, err := Connect(ctx, src, key)
	if err != nil {
		return nil, ConnError(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	for i := range n {
		if i > 0 {
			_, name, args = command(i)
		}
		if err := conn.Send(name, args...); err != nil {
			return nil, explain(err)
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, explain(err)
	}
	for range n {
		reply, err := redis.ReceiveContext(conn, ctx)
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			return replies, explain(err)
		}
		replies = append(replies, Answer[any]{reply, err})
	}
	return replies, nil
}

// readEach runs a command that only reads once for each of the stores, which are of one handle, and gives take the
// replies. It sends the commands of a slot together. Stores of which the key has a wrong type are left out.
func readEach(
	ctx context.Context, stores []*Store, command func(*Store) (name string, args []any),
	take func(i int, reply any) error,
) error {
	return bySlot(stores, sentTogether, func(places []int) error {
		name, _ := command(stores[places[0]])
		explain := func(err error) error { return fmt.Errorf("delayed: %s: %w", name, err) }
		replies, err := sendPage(ctx, stores[places[0]].Src, len(places), explain, func(i int) (string, string, []any) {
			s := stores[places[i]]
			name, args := command(s)
			return s.keys.list, name, args
		})
		if err != nil {
			return err
		}
		for i, p := range places {
			reply := replies[i].Value
			if replies[i].Err != nil { // the connection's node does not have the key, or it has a wrong type
				name, args := command(stores[p])
				switch reply, err = stores[p].do(ctx, name, args...); {
				case IsWrongType(err):
					continue
				case err != nil:
					return err
				}
			}
			if err := take(p, reply); err != nil {
				return explain(err)
			}
		}
		return nil
	})
}

// bySlot calls do with the places of stores of one slot, at most so many at once, until all had their turn.
func bySlot(stores []*Store, most int, do func(places []int) error) error {
	slots := map[int][]int{}
	for i, s := range stores {
		slots[s.Slot()] = append(slots[s.Slot()], i)
	}
	for _, places := range slots {
		for page := range slices.Chunk(places, most) {
			if err := do(page); err != nil {
				return err
			}
		}
	}
	return nil
}

// LongestWait is how long a call without a deadline waits for replicas. It is shorter than the call's time-out, so that
// Redis can still answer how many replicas have confirmed.
const LongestWait = CallTimeout / 5 * 4

// waitOf returns how long a call waits for replicas.
func waitOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return LongestWait
	}
	// Redis takes 0 for no limit at all.
	return min(max(time.Until(deadline)/5*4, time.Millisecond), LongestWait)
}

// sendWaiting is send followed by WAIT in the same request: Redis waits until so many replicas have what this
// connection has written. If fewer confirm it within the given time, the error wraps ErrUnknown.
func (s *Script) sendWaiting(
	ctx context.Context, conn redis.Conn, within time.Duration, replicas int, all []any,
) (any, error) {
	reply, confirmed, err, lacking := pipelined(ctx, conn, within, replicas, "EVALSHA", all)
	if answer.Code(err) == "NOSCRIPT" {
		all[0] = s.Source
		reply, confirmed, err, lacking = pipelined(ctx, conn, within, replicas, "EVAL", all)
	}
	switch {
	case err != nil:
		return nil, s.Explain(ofOtherKind(ctx, conn, CallTimeout, err))
	case lacking != nil:
		return nil, fmt.Errorf("%w: %s: it was enqueued, and whether %d replicas have it is unknown: WAIT: %w",
			ErrUnknown, s.Name, replicas, lacking)
	case confirmed < replicas:
		return nil, fmt.Errorf("%w: %s: it was enqueued, and %d of %d replicas have confirmed it within %v",
			ErrUnknown, s.Name, confirmed, replicas, within)
	}
	return reply, nil
}

// pipelined sends a script's call and WAIT in one request. err is the error of the call, lacking that of WAIT.
func pipelined(ctx context.Context, conn redis.Conn, within time.Duration, replicas int, cmd string, all []any) (
	reply any, confirmed int, err, lacking error,
) {
	if err = conn.Send(cmd, all...); err == nil {
		err = conn.Send("WAIT", replicas, within.Milliseconds())
	}
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		return nil, 0, err, nil
	}
	if reply, err = receive(ctx, conn); err != nil && !answer.Is(err) {
		return nil, 0, err, nil
	}
	confirmed, lacking = redis.Int(receive(ctx, conn))
	return reply, confirmed, err, lacking
}

// receive waits for the answer to a command that was sent.
func receive(ctx context.Context, conn redis.Conn) (any, error) {
	if ctx.Done() == nil {
		return redis.ReceiveWithTimeout(conn, CallTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return redis.ReceiveContext(conn, ctx)
}
