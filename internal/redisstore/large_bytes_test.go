package redisstore

import (
	"fmt"
	"time"
)

// largeFiled files messages of 100 KiB that are due.
const largeFiled = `for i = 1, 10 do
  local id = 'id' .. ARGV[1] * 10 + i
  redis.call('ZADD', KEYS[1], 1763690000000, id)
  redis.call('HSET', KEYS[2], id, string.rep('x', 102400))
end`

func (l *large) bytes() {
	_, err := l.Register(bg, "w", time.Hour, "v")
	l.must(err)
	batch := uint64(0)
	claim := func(want int) {
		l.t.Helper()
		batch++
		got, err := l.Claim(bg, ClaimCall{Worker: "w", Batch: batch, Most: maxClaim})
		l.must(err)
		if len(got.Messages) != want {
			l.t.Errorf("%d tasks were claimed, expected %d", len(got.Messages), want)
		}
	}
	l.fill(5, `for i = 1, 10 do redis.call('RPUSH', KEYS[1], string.rep('x', 102400)) end`, l.keys.list)
	for range 5 {
		claim(10)
	}
	l.fill(5, `redis.call('RPUSH', KEYS[1], string.rep('x', 1024 * 1024))`, l.keys.list)
	for range 5 {
		claim(1)
	}
	l.fill(1, "for i = 1, 50 do redis.call('RPUSH', KEYS[1], i) end", l.keys.list)
	l.fill(1, "for i = 1, 40 do redis.call('RPUSH', KEYS[1], string.rep('x', 102400)) end", l.keys.list)
	for _, n := range []int{17, 17, 17, 10, 10, 10, 9} { // it ends before a step that would read megabytes
		claim(n)
	}
	// A run of large messages that ends before the last message of a step.
	l.fill(1, "for i = 1, 17 do redis.call('RPUSH', KEYS[1], i) end", l.keys.list)
	l.fill(1, "for i = 1, 150 do redis.call('RPUSH', KEYS[1], string.rep('x', 102400)) end", l.keys.list)
	l.fill(1, "for i = 1, 200 do redis.call('RPUSH', KEYS[1], i) end", l.keys.list)
	claim(17)
	for range 14 {
		claim(10)
	}
	claim(210)
	for i := range 3 {
		messages := make([]Envelope, 10)
		for j := range messages {
			messages[j] = Envelope{ID: fmt.Sprint("new", i, j), Message: make([]byte, 100<<10)}
		}
		l.must(l.Enqueue(bg, messages))
		l.must(l.Schedule(bg, messages, later, true))
	}
	l.fill(5, largeFiled, l.keys.retry, l.keys.tasks)
	for range 5 {
		n, _, _, err := l.Move(bg, ShelfRetry, MoveBatch)
		l.must(err)
		if n != 10 {
			l.t.Errorf("%d tasks were moved, expected 10", n)
		}
	}
	l.fill(5, largeFiled, l.keys.parked, l.keys.tasks)
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprint("id", i+1))
	}
	for i := range 5 {
		got, err := l.Unpark(bg, ClaimCall{Worker: "w", Batch: batch + uint64(i) + 1, Most: 50, Parked: ids[10*i:]})
		l.must(err)
		if len(got.Messages) != 10 {
			l.t.Errorf("%d tasks were unparked, expected 10", len(got.Messages))
		}
	}
}
