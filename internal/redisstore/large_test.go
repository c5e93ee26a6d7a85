package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// mostCommands is how many commands one run of a script may call, whatever the size of the queue.
const mostCommands = MaxBatchTasks + MaxBatchTasks/2

// large is a server with a large queue on it.
type large struct {
	*Store
	t      testing.TB
	server *redistest.Server
	conn   redis.Conn
	meter  *meter
	scale  int // thousands of claims of a dead worker, tens of thousands of pending tasks
}

// largeCases are scripts on queues as large as they get when no worker has run for a while.
var largeCases = []struct {
	name string
	run  func(l *large)
}{
	{"up to a million pending without notifications", (*large).pending},
	{"claims of a dead worker", (*large).lost},
	{"claims of a dead worker to archive", (*large).poison},
	{"a hundred thousand surplus notifications", (*large).surplus},
	{"many scheduled, all due", (*large).due},
	{"tens of thousands parked and archived", (*large).filed},
	{"many expired locks, results and revocations", (*large).over},
	{"many calls in a group, and as many groups", (*large).gathered},
	{"large messages", (*large).bytes},
}

// onLarge runs a case on a server of its own and returns the largest growth of probe during a command or a script.
// It has as many tasks as scale says.
func onLarge(t testing.TB, scale int, run func(*large), probe func(*large) float64) *meter {
	t.Helper()
	server := redistest.Start(t)
	l := &large{t: t, server: server, conn: server.Dial(t), scale: scale}
	m := newMeter(dialled(t, server.URL()), func() float64 { return probe(l) })
	l.Store, l.meter = NewStore(m, "", redistest.Name(t)), m
	// Do this first, so that neither loading scripts nor connecting counts.
	for _, row := range Scripts {
		server.Do(t, "SCRIPT", "LOAD", row.Source)
	}
	run(l)
	if len(m.most) == 0 {
		t.Error("nothing was measured")
	}
	return m
}

// TestScriptsAreBounded counts the commands that scripts call, because all clients of the server wait for them.
func TestScriptsAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range largeCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := onLarge(t, 3, c.run, func(l *large) float64 {
				return float64(redistest.CommandStatsOn(t, l.conn).Total("info"))
			})
			for name, n := range m.most {
				if n--; n > mostCommands { // one of them is the script itself
					t.Errorf("%s called %.0f commands, expected at most %d", name, n, mostCommands)
				}
			}
			t.Logf("most commands: %v", m.most)
		})
	}
}

// BenchmarkScripts measures how long the longest script keeps the server's process busy. No client should have to wait
// for more than 5 ms.
func BenchmarkScripts(b *testing.B) {
	for _, c := range largeCases {
		b.Run(c.name, func(b *testing.B) {
			if _, ok := cpuTime(1); !ok {
				b.Skip("this system does not tell the processor time of another process")
			}
			var longest float64
			for b.Loop() {
				m := onLarge(b, 100, c.run, func(l *large) float64 {
					busy, _ := cpuTime(l.server.PID())
					return float64(busy) / float64(time.Millisecond)
				})
				for name, ms := range m.most {
					longest = max(longest, ms)
					b.Logf("%s %.2f ms", name, ms)
				}
			}
			b.ReportMetric(longest, "longest-ms")
			b.ReportMetric(0, "ns/op") // it would measure filling the queue
		})
	}
}

// many is how many thousands expire or are due: a hundred at most.
func (l *large) many() int { return min(10*l.scale, 100) }

// fill runs a script of the test's that fills the queue, n times with i from 0.
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
	l.fill(10*l.scale, thousand, l.keys.list)
	ask := func() {
		l.t.Helper()
		conn, err := l.Src.Conn(bg, l.keys.list)
		l.must(err)
		defer conn.Close()
		queues, err := Survey(bg, &Link{conn: conn}, []*Store{l.Store}, "me", time.Hour)
		l.must(err)
		todos, err := Check(bg, l.Src, []*Store{l.Store})
		l.must(err)
		if queues[0].Pending != todos[0].Pending {
			l.t.Errorf("survey sees %d, check %d pending tasks", queues[0].Pending, todos[0].Pending)
		}
	}
	_, err := l.Register(bg, "w", time.Hour, "v")
	l.must(err)
	ask()
	got, err := l.Claim(bg, ClaimCall{Worker: "w", Batch: 1000})
	l.must(err)
	if got.Left != 10_000*l.scale {
		l.t.Errorf("%d tasks are left, expected all", got.Left)
	}
	for batch := uint64(1); batch <= 40; batch++ {
		got, err := l.Claim(bg, ClaimCall{Worker: "w", Batch: batch, Most: maxClaim, Legacy: batch > 30, Mend: true})
		l.must(err)
		tokens := slices.Collect(TokensOf(batch, len(got.Messages)))
		for len(tokens) > 0 {
			part := tokens[:min(MaxTokens, len(tokens))]
			tokens = tokens[len(part):]
			if batch%2 == 0 {
				_, err = l.Release(bg, "w", []uint64{batch}, part, l.Store, true)
			} else {
				_, err = l.Ack(bg, "w", Ended{
					Pulse: []string{"v", "u"}[batch%4/2], Batches: []uint64{batch},
					Tokens: part,
				}, 0)
			}
			l.must(err)
		}
		_, err = l.Repair(bg, RepairPage)
		l.must(err)
	}
	for range 20 {
		l.must(l.Enqueue(bg, envelopes(MaxBatchTasks)))
	}
	ask()
	_, err = l.Length(bg)
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

// largeSweep limits a sweep as the configuration does by default.
var largeSweep = SweepLimits{
	MaxDeaths: 3, DeathsLife: 72 * time.Hour, ArchiveKeep: 90 * 24 * time.Hour, ArchiveMost: 10_000,
}

func (l *large) sweepAll(action string) (requeued, archived int) {
	l.t.Helper()
	hash := l.keys.processing + "w"
	l.fill(l.scale, thousandClaims, hash, l.keys.claims+"w", l.keys.workers)
	for {
		page, total, err := claimsPage(l.Store, l.ClaimsOf("w"), SweepPage)
		l.must(err)
		if total == 0 {
			break
		}
		actions := make([]SweepAction, len(page))
		for i, c := range page {
			actions[i] = SweepAction{
				Claimed: c, Kind: action, Renewed: c.Message, ID: "id " + c.Token,
				Info: make([]byte, 200), Digest: "sha " + c.Token,
			}
		}
		r, a, _, err := l.Sweep(bg, l.ClaimsOf("w"), largeSweep, actions)
		l.must(err)
		requeued, archived = requeued+r, archived+a
	}
	gone, err := l.Forget(bg, "w")
	l.must(err)
	if !gone {
		l.t.Error("the worker was not forgotten")
	}
	return requeued, archived
}

func (l *large) lost() {
	if n, _ := l.sweepAll("count"); n != l.scale*1000 {
		l.t.Errorf("%d tasks were given back, expected %d,000", n, l.scale)
	}
}

func (l *large) poison() {
	if _, n := l.sweepAll("archive"); n != l.scale*1000 {
		l.t.Errorf("%d tasks were archived, expected %d,000", n, l.scale)
	}
}

func (l *large) surplus() {
	const hundredThousand = `local ones = {}
for i = 1, 1000 do ones[i] = '1' end
for i = 1, 100 do redis.call('RPUSH', KEYS[1], unpack(ones)) end`
	_, err := l.Register(bg, "w", time.Hour, "v")
	l.must(err)
	for batch, change := range []func() error{
		func() error {
			_, err := l.Claim(bg, ClaimCall{Worker: "w", Batch: 1, Most: 10, Held: 1})
			return err
		},
		func() error { _, err := l.Repair(bg, 0); return err },
		func() error {
			l.must(l.Enqueue(bg, envelopes(20)))
			_, err := l.Repair(bg, 0)
			return err
		},
		func() error {
			_, err := l.Claim(bg, ClaimCall{Worker: "w", Batch: 2, Most: 10, Held: 1, Legacy: true})
			return err
		},
		func() error { _, err := l.Claim(bg, ClaimCall{Worker: "w", Batch: 3, Most: 100}); return err },
	} {
		l.fill(1, hundredThousand, l.keys.noti)
		if batch == 0 {
			l.fill(9, hundredThousand, l.keys.noti) // a million
		}
		l.must(change())
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
	l.fill(l.many(), thousandDue, l.keys.scheduled, l.keys.tasks)
	for range 20 {
		_, err := Check(bg, l.Src, []*Store{l.Store})
		l.must(err)
		n, _, _, err := l.Move(bg, ShelfScheduled, MoveBatch)
		l.must(err)
		if n != MoveBatch {
			l.t.Errorf("%d tasks were moved, expected %d", n, MoveBatch)
		}
	}
	for i := range 5 {
		batch := envelopes(MaxBatchTasks)
		for j := range batch {
			batch[j].ID += fmt.Sprint(" of ", i)
		}
		l.must(l.Schedule(bg, batch, 1000, true))
	}
}

func (l *large) filed() {
	l.fill(20, thousandDue, l.keys.archived, l.keys.tasks, l.keys.info)
	l.fill(20, strings.ReplaceAll(thousandDue, "'id", "'parked"), l.keys.parked, l.keys.tasks, l.keys.info)
	l.fill(1, thousandClaims, l.keys.processing+"w", l.keys.claims+"w", l.keys.workers)
	_, err := l.Register(bg, "w", time.Hour, "v")
	l.must(err)
	for i := range 20 {
		page, err := l.ParkedPage(bg, 500*i, ParkedPage, false)
		l.must(err)
		var ids []string
		for _, f := range page {
			ids = append(ids, f.ID)
		}
		_, err = l.Unpark(bg, ClaimCall{Worker: "w", Batch: uint64(5000 + i), Most: ParkedPage, Parked: ids})
		l.must(err)
		page, err = l.ParkedPage(bg, 0, TrimPage, true)
		l.must(err)
		_, err = l.Condemn(bg, ShelfParked, time.Hour, page)
		l.must(err)
		_, err = l.Trim(bg, 10_000, TrimPage)
		l.must(err)
	}
	for i := range 10 {
		var tasks []Shelved
		for j := range MaxShelved {
			tasks = append(tasks, toShelve(fmt.Sprintf("%d-1", i*MaxShelved+j+1), fmt.Sprintf("x%d of %d", j, i),
				time.Hour))
		}
		_, _, err := l.Shelve(bg, "w", nil, ShelfArchived, 10_000, []string{"archived"}, tasks)
		l.must(err)
	}
}

// thousandOver fills the locks hash, set and hash of completed tasks, and the revoked set, with what expired long ago.
const thousandOver = `local due, values, locks = {}, {}, {}
for i = 1, 1000 do
  local name = 'over' .. ARGV[1] * 1000 + i
  due[2 * i - 1], due[2 * i] = 1763690000000, name
  values[2 * i - 1], values[2 * i] = name, string.rep('x', 50)
  locks[2 * i - 1], locks[2 * i] = name, '1763690000000 ' .. name
end
redis.call('HSET', KEYS[1], unpack(locks))
redis.call('ZADD', KEYS[2], unpack(due))
redis.call('HSET', KEYS[3], unpack(values))
redis.call('ZADD', KEYS[4], unpack(due))`

func (l *large) over() {
	l.fill(l.many(), thousandOver, l.keys.locks, l.keys.completed, l.keys.results, l.keys.revoked)
	l.fill(10, thousandClaims, l.keys.processing+"w", l.keys.claims+"w", l.keys.workers)
	cursor := "0"
	for i := range 10 {
		batch := make([]Envelope, MaxEnlisted)
		ends := make([]Completed, MaxShelved)
		for j := range batch {
			name := fmt.Sprintf("%d of %d", j, i)
			batch[j].ID, batch[j].Message = "id "+name, []byte("message")
			// Every second one replaces the one before.
			batch[j].Hold = &Hold{
				Reserve: true, Name: fmt.Sprint("lock ", j, i/2), Life: 60_000,
				Conflict: conflictReplace,
			}
		}
		for j := range ends {
			ends[j] = Completed{
				Token: fmt.Sprintf("%d-1", i*MaxShelved+j+1), ID: fmt.Sprintf("id %d of %d", j, i),
				Keep: time.Hour, Value: make([]byte, 100), Awaited: true,
				Lock: fmt.Sprint("lock ", j, i/2),
			}
		}
		_, err := l.Enlist(bg, Place{How: "in", Due: 1000}, batch)
		l.must(err)
		_, err = l.Enlist(bg, Place{How: "back"}, []Envelope{{ID: "one", Message: []byte("m")}})
		l.must(err)
		stood, _, err := l.Complete(bg, "w", nil, ends)
		l.must(err)
		if !stood[0] || !stood[len(stood)-1] {
			l.t.Error("a claim did not stand")
		}
		_, err = l.Cancel(bg, fmt.Sprint("some ", i), "", false, time.Hour, nil)
		l.must(err)
		// From the beginning of the hash, Redis would look in vain where locks were dropped before, and give up.
		var dropped int
		cursor, _, dropped, err = l.Lapse(bg, cursor, LapsePage)
		l.must(err)
		if dropped < LapsePage/2 {
			l.t.Errorf("%d locks were dropped", dropped)
		}
		for _, drop := range []func(context.Context, int) (int, error){l.Expire, l.Pardon} {
			_, err := drop(bg, PardonPage)
			l.must(err)
		}
	}
}

// thousandGathered fills a group, the groups set and the gathered hash.
const thousandGathered = `local calls, due, states = {}, {}, {}
for i = 1, 1000 do
  local group = 'group' .. ARGV[1] * 1000 + i
  calls[i] = 'message ' .. group
  due[2 * i - 1], due[2 * i] = 1763690000000, group
  states[2 * i - 1], states[2 * i] = group, '1763690000000 1763690000000 0 1000 10 1'
end
redis.call('RPUSH', KEYS[1], unpack(calls))
redis.call('ZADD', KEYS[2], unpack(due))
redis.call('HSET', KEYS[3], unpack(states))`

func (l *large) gathered() {
	const key = "group1"
	l.fill(l.many(), thousandGathered, l.keys.group+key, l.keys.groups, l.keys.gathered)
	members := make([]group.Member, MaxBatchTasks)
	for i := range members {
		members[i] = group.Member{
			Message: fmt.Append(nil, "message ", i), Group: key,
			How: wire.Gather{Grace: 1000, MaxSize: 1000}, Bytes: 10, Values: 1,
		}
	}
	_, err := l.Gather(bg, members)
	l.must(err)
	for range 20 {
		_, _, err := l.Ripe(bg, MaxRipe, time.Minute)
		l.must(err)
		n, version, found, _, err := l.Peek(bg, key, 1<<20)
		l.must(err)
		if n != MaxBatchTasks || len(found) < n {
			l.t.Fatalf("%d of %d calls were read, expected %d", len(found), n, MaxBatchTasks)
		}
		for i := range n {
			members[i].Message = found[i]
		}
		fired, _, err := l.Fire(bg, key, members[:n], 0, version, [][]byte{[]byte("one for all")})
		l.must(err)
		if fired != FiredHere {
			l.t.Fatal("the group was not fired")
		}
	}
}

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
