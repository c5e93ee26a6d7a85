package delayed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// slowLimit is what no script may take, as all clients of the server wait for it.
const slowLimit = 5 * time.Millisecond

// large is a server with a large queue on it.
type large struct {
	*store
	t      *testing.T
	server *redistest.Server
	conn   redis.Conn
	meter  *meter
}

// TestSlowLog works on queues as large as they get when all workers have been away, and expects no script, and no other command, in the
// slow log. One that is there although the server's process was not busy for so long had to wait for a processor, which is no fault of
// the script's.
func TestSlowLog(t *testing.T) {
	server := redistest.Start(t)
	rdb, err := Dial(server.URL())
	src := sourceOf(t, rdb, err)
	for _, c := range []struct {
		name  string
		run   func(l *large)
		limit time.Duration
	}{
		{"a million pending without notifications", (*large).pending, slowLimit},
		{"a hundred thousand claims of a dead worker", (*large).claims, slowLimit},
		{"a hundred thousand claims of a dead worker to archive", (*large).poison, slowLimit},
		{"a hundred thousand surplus notifications", (*large).surplus, slowLimit},
		{"a hundred thousand scheduled, all due", (*large).due, slowLimit},
		{"tens of thousands parked and archived", (*large).filed, slowLimit},
		{"a thousand large messages", (*large).bytes, 10 * slowLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &meter{Source: src, pid: server.PID(), limit: c.limit, busy: map[string]time.Duration{}, calls: map[string]int{}}
			l := &large{store: newStore(m, "", redistest.Name(t)), t: t, server: server, conn: server.Dial(t), meter: m}
			// So that neither loading scripts nor connecting counts.
			for _, row := range scripts {
				server.Do(t, "SCRIPT", "LOAD", row.source)
			}
			c.run(l)
			m.report(t, server)
			server.Do(t, "FLUSHALL", "ASYNC")
		})
	}
}

// fill runs a script of the test's that fills the queue, n times with i from 0, and then begins to watch.
func (l *large) fill(n int, source string, keys ...string) {
	l.t.Helper()
	fill := redis.NewScript(len(keys), source)
	for i := range n {
		args := redis.Args{}.AddFlat(keys).Add(i)
		if _, err := fill.Do(l.conn, args...); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *large) watch() {
	l.t.Helper()
	l.server.WatchSlow(l.t, l.meter.limit)
}

// must ends the test at an error.
func (l *large) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// thousand fills a list with messages, a thousand at a time.
const thousand = `local list = {}
for i = 1, 1000 do list[i] = string.format('message %d %s', ARGV[1] * 1000 + i, string.rep('x', 50)) end
return redis.call('RPUSH', KEYS[1], unpack(list))`

func (l *large) pending() {
	l.fill(1000, thousand, l.keys.list)
	l.watch()
	ask := func() {
		l.t.Helper()
		conn, err := l.src.Conn(bg, l.keys.list)
		l.must(err)
		defer conn.Close()
		sights, err := survey(bg, &link{conn: conn}, []*store{l.store}, "me", time.Hour)
		l.must(err)
		todos, err := check(bg, l.src, []*store{l.store})
		l.must(err)
		if sights[0].pending != todos[0].pending {
			l.t.Errorf("survey sees %d, check %d pending tasks", sights[0].pending, todos[0].pending)
		}
	}
	_, err := l.register(bg, "w", time.Hour, "v")
	l.must(err)
	ask()
	got, err := l.claim(bg, claimCall{worker: "w", batch: 1000})
	l.must(err)
	if got.left != 1_000_000 {
		l.t.Errorf("%d tasks are left, expected all", got.left)
	}
	for batch := uint64(1); batch <= 40; batch++ {
		got, err := l.claim(bg, claimCall{worker: "w", batch: batch, most: maxClaim, legacy: batch > 30, mend: true})
		l.must(err)
		tokens := tokensOf(batch, len(got.messages))
		for len(tokens) > 0 {
			part := tokens[:min(maxTokens, len(tokens))]
			tokens = tokens[len(part):]
			if batch%2 == 0 {
				_, err = l.release(bg, "w", []uint64{batch}, part, l.store, true)
			} else {
				_, err = l.ack(bg, "w", ended{pulse: []string{"v", "u"}[batch%4/2], batches: []uint64{batch}, tokens: part}, 0)
			}
			l.must(err)
		}
		_, err = l.repair(bg, repairPage)
		l.must(err)
	}
	for range 20 {
		l.must(l.enqueue(bg, envelopes(maxBatchTasks)))
	}
	ask()
	_, err = l.length(bg)
	l.must(err)
	if n := l.meter.calls["claim"]; n != 41 {
		l.t.Errorf("%d claims were measured, expected 41", n)
	}
}

// thousandClaims fills a processing hash and a claims hash, a batch for each claim.
const thousandClaims = `local claims, times = {}, {}
for i = 1, 1000 do
  local batch = ARGV[1] * 1000 + i
  claims[2 * i - 1], claims[2 * i] = batch .. '-1', 'message ' .. batch .. string.rep('x', 50)
  times[2 * i - 1], times[2 * i] = batch, 1763690000000
end
redis.call('HSET', KEYS[1], unpack(claims))
redis.call('HSET', KEYS[2], unpack(times))
redis.call('SADD', KEYS[3], 'w')`

func (l *large) sweepAll(action string) (requeued, archived int) {
	l.t.Helper()
	hash := l.keys.processing + "w"
	l.fill(100, thousandClaims, hash, l.keys.claims+"w", l.keys.workers)
	l.watch()
	for {
		page, total, err := l.claimsPage(bg, hash, sweepPage)
		l.must(err)
		if total == 0 {
			break
		}
		verdicts := make([]verdict, len(page))
		for i, c := range page {
			verdicts[i] = verdict{claimed: c, action: action, renewed: c.message, id: "id " + c.token, info: make([]byte, 200), digest: "sha " + c.token}
		}
		r, a, _, err := l.sweep(bg, l.keys.heartbeat+"w", hash, sweepBounds, verdicts)
		l.must(err)
		requeued, archived = requeued+r, archived+a
	}
	gone, err := l.forget(bg, "w")
	l.must(err)
	if !gone {
		l.t.Error("the worker was not forgotten")
	}
	return requeued, archived
}

func (l *large) claims() {
	if n, _ := l.sweepAll("count"); n != 100_000 {
		l.t.Errorf("%d tasks were given back, expected 100,000", n)
	}
}

func (l *large) poison() {
	if _, n := l.sweepAll("archive"); n != 100_000 {
		l.t.Errorf("%d tasks were archived, expected 100,000", n)
	}
}

func (l *large) surplus() {
	const hundredThousand = `local ones = {}
for i = 1, 1000 do ones[i] = '1' end
for i = 1, 100 do redis.call('RPUSH', KEYS[1], unpack(ones)) end`
	_, err := l.register(bg, "w", time.Hour, "v")
	l.must(err)
	for batch, change := range []func() error{
		func() error {
			_, err := l.claim(bg, claimCall{worker: "w", batch: 1, most: 10, held: 1})
			return err
		},
		func() error { _, err := l.repair(bg, 0); return err },
		func() error {
			l.must(l.enqueue(bg, envelopes(20)))
			_, err := l.repair(bg, 0)
			return err
		},
		func() error {
			_, err := l.claim(bg, claimCall{worker: "w", batch: 2, most: 10, held: 1, legacy: true})
			return err
		},
		func() error { _, err := l.claim(bg, claimCall{worker: "w", batch: 3, most: 100}); return err },
	} {
		l.fill(1, hundredThousand, l.keys.noti)
		if batch == 0 {
			l.fill(9, hundredThousand, l.keys.noti) // a million
		}
		l.watch()
		l.must(change())
		l.meter.report(l.t, l.server)
	}
}

// thousandDue fills a sorted set, the tasks hash and the info hash.
const thousandDue = `local due, tasks, infos = {}, {}, {}
for i = 1, 1000 do
  local id = string.format('id%07d', ARGV[1] * 1000 + i)
  due[2 * i - 1], due[2 * i] = 1763690000000 + i, id
  tasks[2 * i - 1], tasks[2 * i] = id, 'message ' .. id .. string.rep('x', 50)
  infos[2 * i - 1], infos[2 * i] = id, string.rep('i', 200)
end
redis.call('ZADD', KEYS[1], unpack(due))
redis.call('HSET', KEYS[2], unpack(tasks))
if KEYS[3] then redis.call('HSET', KEYS[3], unpack(infos)) end`

func (l *large) due() {
	l.fill(100, thousandDue, l.keys.scheduled, l.keys.tasks)
	l.watch()
	for range 20 {
		_, err := check(bg, l.src, []*store{l.store})
		l.must(err)
		n, _, err := l.move(bg, shelfScheduled, moveBatch)
		l.must(err)
		if n != moveBatch {
			l.t.Errorf("%d tasks were moved, expected %d", n, moveBatch)
		}
	}
	for i := range 5 {
		batch := envelopes(maxBatchTasks)
		for j := range batch {
			batch[j].id += fmt.Sprint(" of ", i)
		}
		l.must(l.schedule(bg, batch, 1000, true))
	}
}

func (l *large) filed() {
	l.fill(20, thousandDue, l.keys.archived, l.keys.tasks, l.keys.info)
	l.fill(20, strings.ReplaceAll(thousandDue, "'id", "'parked"), l.keys.parked, l.keys.tasks, l.keys.info)
	l.fill(1, thousandClaims, l.keys.processing+"w", l.keys.claims+"w", l.keys.workers)
	l.watch()
	for i := range 20 {
		page, err := l.parkedPage(bg, 500*i, parkedPage, false)
		l.must(err)
		var ids []string
		for _, f := range page {
			ids = append(ids, f.id)
		}
		_, err = l.unpark(bg, ids)
		l.must(err)
		page, err = l.parkedPage(bg, 0, trimPage, true)
		l.must(err)
		_, err = l.condemn(bg, time.Hour, page)
		l.must(err)
		_, err = l.trim(bg, archivedMost, trimPage)
		l.must(err)
	}
	for i := range 10 {
		var tasks []shelved
		for j := range maxShelved {
			tasks = append(tasks, toShelve(fmt.Sprintf("%d-1", i*maxShelved+j+1), fmt.Sprintf("x%d of %d", j, i), time.Hour))
		}
		_, _, err := l.shelve(bg, "w", nil, shelfArchived, archivedMost, []string{"archived"}, tasks)
		l.must(err)
	}
}

func (l *large) bytes() {
	l.fill(100, `for i = 1, 10 do redis.call('RPUSH', KEYS[1], string.rep('x', 102400)) end`, l.keys.list)
	_, err := l.register(bg, "w", time.Hour, "v")
	l.must(err)
	l.watch()
	for batch := uint64(1); batch <= 5; batch++ {
		got, err := l.claim(bg, claimCall{worker: "w", batch: batch, most: maxClaim})
		l.must(err)
		if len(got.messages) != 40 {
			l.t.Errorf("%d tasks were claimed, expected 40", len(got.messages))
		}
	}
}

// meter is a source that measures how long the server's process is busy with each command.
type meter struct {
	Source
	pid   int
	limit time.Duration // what no command may take

	mu    sync.Mutex               // protects the following
	busy  map[string]time.Duration // command, or name of the script, to the longest time
	calls map[string]int
}

func (m *meter) Conn(ctx context.Context, key string) (redis.Conn, error) {
	conn, err := m.Source.Conn(ctx, key)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, meter: m}, nil
}

type meteredConn struct {
	redis.Conn
	meter *meter
}

func (c *meteredConn) Do(cmd string, args ...any) (any, error) {
	defer c.meter.measure(cmd, args)()
	return c.Conn.Do(cmd, args...)
}

func (c *meteredConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	defer c.meter.measure(cmd, args)()
	return redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
}

func (c *meteredConn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

func (m *meter) measure(cmd string, args []any) func() {
	name := nameOfCommand(cmd, args)
	start, ok := cpuTime(m.pid)
	return func() {
		took := m.limit + 1 // where it cannot be measured, the slow log decides alone
		if end, ok2 := cpuTime(m.pid); ok && ok2 {
			took = end - start
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.calls[name]++
		m.busy[name] = max(m.busy[name], took)
	}
}

// nameOfCommand is the name of the script for a script.
func nameOfCommand(cmd string, args []any) string {
	if cmd == "EVALSHA" && len(args) > 0 {
		for name, row := range scripts {
			if row.sha == fmt.Sprint(args[0]) {
				return name
			}
		}
	}
	return cmd
}

// report reports what is in the slow log, unless the process was never busy for so long with such a command.
func (m *meter) report(t *testing.T, server *redistest.Server) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.busy) == 0 {
		t.Error("nothing was measured")
	}
	for _, slow := range server.SlowLog(t) {
		args := make([]any, len(slow.Args)-1)
		for i, a := range slow.Args[1:] {
			args[i] = a
		}
		name := nameOfCommand(slow.Args[0], args)
		if busy := m.busy[name]; busy > m.limit {
			t.Errorf("%s took %v, expected at most %v; the server was busy with one for up to %v", name, slow.Took, m.limit, busy)
		} else {
			t.Logf("%s took %v, but the server was busy with one for at most %v", name, slow.Took, busy)
		}
	}
	t.Logf("longest: %v", m.busy)
}
