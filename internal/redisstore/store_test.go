package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// storeCase is one call of a store method: the state of Redis before, the result of the call, and the state of Redis
// after. The test compares all keys of the queue.
type storeCase struct {
	script string // set by the runner
	name   string
	seed   redistest.State
	do     func(s *Store) (any, error)
	result any             // expected result; with err, nil
	err    error           // expected error, for errors.Is
	idle   bool            // whether it writes nothing, so that a full Redis allows it
	want   redistest.State // expected state; nil: unchanged
}

// storeTable holds the cases of one script. They run on a server, on a cluster, on a full server and on the embedded
// one.
type storeTable struct {
	script  string
	refused bool // whether a full Redis refuses the script
	cases   []storeCase
}

// storeTables are the tables that the test files of the families hold. One that is missing here does not run.
var storeTables = []storeTable{
	enqueueCases, scheduleCases, enlistCases, modeCases, reformCases,
	claimCases, unlockCases,
	ackCases, shelveCases, completeCases, releaseCases,
	beatCases, registerCases, forgetCases, knownCases, markCases, rewaitCases, publishCases,
	surveyCases, livesCases, sweepCases, repairCases,
	checkCases, moveCases, unparkCases, condemnCases, trimCases, lapseCases,
	fieldsCases, pageCases, lookCases, progressCases, expireCases, rerunCases, deleteCases,
	gatherCases, ripeCases, peekCases, fireCases, joinCases,
	controlCases, cancelCases, pardonCases,
	agendaCases, entryCases, tickCases,
	withdrawCases, refileCases, shelfCases, metricsCases, hastenCases,
}

const (
	// past and later are due times that are in the past, or in the future, whenever these tests run.
	past  = 1_000
	later = 4_000_000_000_001
	// round is a due time that some servers write as 4e+12.
	round = 4_000_000_000_000
	// nowMark stands for a claim time that is the current time.
	nowMark = "now"
	// fromNowBase marks scores of expected sets that count from the time of the call.
	fromNowBase = 1 << 52
	// testDay is the day whose counters are kept.
	testDay = "_stats:20250102"
)

// fromNow returns the score of a task that is due d after the call.
func fromNow(d time.Duration) int64 { return fromNowBase + d.Milliseconds() }

// counted returns the counters of the day.
func counted(h redistest.Hash) redistest.Expiring {
	return redistest.Expiring{Value: h, For: statsLife * time.Second}
}

// alive is a heartbeat.
var alive = redistest.Expiring{Value: "v", For: time.Hour}

// with returns a state with changes: a nil value stands for a key that does not exist.
func with(state, changes redistest.State) redistest.State {
	out := redistest.State{}
	maps.Copy(out, state)
	maps.Copy(out, changes)
	return out
}

// present returns a state without the keys that do not exist.
func present(state redistest.State) redistest.State {
	out := maps.Clone(state)
	maps.DeleteFunc(out, func(_ string, value any) bool { return value == nil })
	return out
}

// ones returns n notifications.
func ones(n int) redistest.List { return slices.Repeat(redistest.List{"1"}, n) }

// target is a server on which cases run.
type target struct {
	src    Source
	prefix string
	tagged bool                                            // queue names carry a hash tag
	dial   func(t testing.TB, key string) redis.Conn       // to write and read states
	before func(t testing.TB, table *storeTable)           // called between seeding and the call; may be nil
	after  func(t testing.TB, c *storeCase, got *callView) // called after the call, before looking; may be nil
}

// callView is the result of a call.
type callView struct {
	result any
	err    error
}

// dialled returns a source of connections to a server. It is closed at the end of the test.
func dialled(t testing.TB, url string) Source {
	t.Helper()
	calls, loops, _, err := DialSources(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { calls.Close(); loops.Close() })
	return loops
}

// serverTarget returns a target for a single server.
func serverTarget(t testing.TB, url string) *target {
	t.Helper()
	conn, err := redis.DialURL(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &target{src: dialled(t, url), dial: func(testing.TB, string) redis.Conn { return conn }}
}

// TestStore runs all cases on the shared server, or on the one that the environment names, which the tests of the
// embedded server use.
func TestStore(t *testing.T) {
	t.Parallel()
	url := os.Getenv("DELAYED_STORE_URL")
	if url == "" {
		url = redistest.Shared(t).URL()
	}
	runTables(t, serverTarget(t, url))
}

// TestStoreOnFullServer runs all cases on a server whose memory is full at the time of the call. Enqueueing is refused
// and writes nothing; everything else works as usual.
func TestStoreOnFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	to := serverTarget(t, server.URL())
	refused := false
	to.before = func(t testing.TB, table *storeTable) {
		t.Helper()
		server.Do(t, "CONFIG", "SET", "maxmemory", 1)
		refused = table.refused
	}
	to.after = func(t testing.TB, c *storeCase, got *callView) {
		t.Helper()
		server.Do(t, "CONFIG", "SET", "maxmemory", 0)
		// A call that is refused for another reason is refused before the memory matters.
		if refused && c.err == nil && !c.idle {
			if !errors.Is(got.err, ErrFull) || errors.Is(got.err, ErrUnknown) {
				t.Errorf("expected ErrFull, found %v", got.err)
			}
			c.want, c.result, c.err = nil, nil, ErrFull
		}
	}
	runTables(t, to)
}

func runTables(t *testing.T, to *target) {
	t.Helper()
	for i := range storeTables {
		table := &storeTables[i]
		t.Run(table.script, func(t *testing.T) {
			for _, c := range table.cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, to, table) })
			}
		})
	}
}

// run runs one case.
func (c storeCase) run(t *testing.T, to *target, table *storeTable) {
	t.Helper()
	name := redistest.Name(t)
	if to.tagged {
		name = "{" + name + "}.q"
	}
	key := to.prefix + name
	conn := to.dial(t, key)
	defer redistest.Delete(t, conn, key) // so that later cases find their keys among few
	c.script = table.script
	redistest.Seed(t, conn, key, present(c.seed))
	sound := consistent(t, conn, key, c.script+"/"+c.name)
	recorder := newRecordingSource(to.src)
	s := fixedDay(NewStore(recorder, to.prefix, name))

	if to.before != nil {
		to.before(t, table)
	}
	start := redistest.Time(t, conn)
	var got callView
	got.result, got.err = c.do(s)
	end := redistest.Time(t, conn)
	if to.after != nil {
		to.after(t, &c, &got)
	}

	switch {
	case c.err != nil:
		if !errors.Is(got.err, c.err) {
			t.Errorf("expected the error %v, found %v with %v", c.err, got.err, got.result)
		}
	case got.err != nil:
		t.Errorf("%v", got.err)
	case !reflect.DeepEqual(got.result, c.result):
		t.Errorf("returned %v, expected %v", got.result, c.result)
	}
	if c.want == nil {
		c.want = c.seed
	}
	have := redistest.Dump(t, conn, key)
	markTimes(have, c.want, start, end)
	if diff := redistest.Diff(have, present(c.want)); diff != "" {
		t.Errorf("after the call:\n%s", diff)
	}
	for suffix, value := range c.want {
		if e, ok := value.(redistest.Expiring); ok && e.For > 0 {
			if left := redistest.TTL(t, conn, key+suffix); left > e.For || left < e.For-time.Minute {
				t.Errorf("key N%s lives for %v, expected %v", suffix, left, e.For)
			}
		}
	}
	// A consistent state remains consistent.
	if sound {
		redistest.CheckInvariants(t, conn, key, redistest.Invariants{})
	}
	recorder.check(t, key, table.script)
}

// fixedDay makes a store count on testDay.
func fixedDay(s *Store) *Store {
	s.Now = func() time.Time { return time.Date(2025, 1, 2, 23, 59, 0, 0, time.UTC) }
	return s
}

// TestCommandsOnEmptyQueues counts the commands of the scripts that run all the time when there is nothing to do.
func TestCommandsOnEmptyQueues(t *testing.T) {
	server := redistest.Start(t)
	s := NewStore(dialled(t, server.URL()), "", redistest.Name(t))
	if _, err := s.Register(bg, "w", time.Hour, "v"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func(s *Store) (any, error)
		want int64 // with the script itself, without TIME
	}{
		{"check", checkOne, 1 + 1},
		{"survey", surveyOf(false), 1 + 4},
		{"beat", beatWith(time.Hour, true, true, false), 1 + 3},
		{"claim", claimWith(ClaimCall{Most: 10}), 1 + 6},
	} {
		for range 2 { // the second time, the script is known and the lock is taken
			before := server.CommandStats(t)
			if _, err := c.do(s); err != nil {
				t.Fatal(err)
			}
			if diff := server.CommandStats(t).Since(before); diff["eval"] == 0 &&
				diff.Total("ping", "client|setname", "select", "time") != c.want {
				t.Errorf("%s: expected %d commands, found %v", c.name, c.want, diff)
			}
		}
	}
}

// markTimes replaces times in have by the marks of want if they are in the expected range between start and end.
func markTimes(have, want redistest.State, start, end int64) {
	for suffix, value := range have {
		switch h := value.(type) {
		case redistest.Zset:
			w, _ := want[suffix].(redistest.Zset)
			for id, score := range h {
				if mark := w[id]; mark >= fromNowBase && start <= score-(mark-fromNowBase) &&
					score-(mark-fromNowBase) <= end {
					h[id] = mark
				}
			}
		case redistest.Hash:
			w, _ := want[suffix].(redistest.Hash)
			for field, text := range h {
				words, marks := strings.Split(text, " "), strings.Split(w[field], " ")
				for i := range min(len(words), len(marks)) {
					// A mark is "now", or "now+60000".
					after, marked := strings.CutPrefix(marks[i], nowMark)
					add, _ := strconv.ParseInt("0"+strings.TrimPrefix(after, "+"), 10, 64)
					if ms, err := strconv.ParseInt(words[i], 10, 64); err == nil && marked && start <= ms-add &&
						ms-add <= end {
						words[i] = marks[i]
					}
				}
				h[field] = strings.Join(words, " ")
			}
		case redistest.List:
			if !strings.HasPrefix(suffix, "_history:") {
				continue
			}
			for i, line := range h {
				words := strings.Split(line, " ")
				if ms, err := strconv.ParseInt(words[min(1, len(words)-1)], 10, 64); err == nil && start <= ms &&
					ms <= end {
					words[1] = nowMark
					h[i] = strings.Join(words, " ")
				}
			}
		}
	}
}

// silent is a testing.TB that only records that it failed.
type silent struct {
	testing.TB
	failed bool
}

func (s *silent) Helper() {}

func (s *silent) Errorf(string, ...any) { s.failed = true }

// soundSeeds remembers which cases begin in a consistent state, because each runs on many servers.
var soundSeeds sync.Map

// consistent reports whether a case begins in a consistent state, which key holds now.
func consistent(t testing.TB, conn redis.Conn, key, of string) bool {
	t.Helper()
	if sound, known := soundSeeds.Load(of); known {
		return sound == true
	}
	s := &silent{TB: t}
	redistest.CheckInvariants(s, conn, key, redistest.Invariants{})
	soundSeeds.Store(of, !s.failed)
	return !s.failed
}

// recordingSource records the keys that scripts get.
type recordingSource struct {
	Source

	mu    sync.Mutex // protects calls
	calls []recordedCall
}

type recordedCall struct {
	sha  string
	keys []string
}

func newRecordingSource(src Source) *recordingSource {
	s := new(recordingSource)
	s.Source = redistest.Intercept(src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd == "EVALSHA" {
			s.note(args)
		}
		return send()
	})
	return s
}

func (s *recordingSource) note(args []any) {
	call := recordedCall{sha: fmt.Sprint(args[0])}
	n, _ := strconv.Atoi(fmt.Sprint(args[1]))
	for _, key := range args[2 : 2+n] {
		call.keys = append(call.keys, fmt.Sprint(key))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// check compares the keys of the calls with the script's header.
func (s *recordingSource) check(t testing.TB, queue, name string) {
	t.Helper()
	header := scriptTexts()[name]
	most := len(header.keys)
	seen := false
	for _, call := range s.calls {
		if call.sha != Scripts[name].Sha {
			continue
		}
		seen = true
		if n := len(call.keys); n != most && (!header.each || n%most != 0) {
			t.Errorf("script %s was called with %d keys, its header has %d", name, n, most)
			continue
		}
		for i, key := range call.keys {
			said := header.keys[i%most]
			if suffix := strings.TrimPrefix(key, queue); !slices.ContainsFunc(keysCalled(said),
				func(k dictionaryKey) bool { return k.matches(suffix) }) {
				t.Errorf("script %s calls key %d %q, the store gives it N%s", name, i+1, said, suffix)
			}
		}
	}
	if !seen {
		t.Errorf("script %s was not called", name)
	}
}

// DialCluster returns the source of a handle that rediscluster.Dial has made. The external tests set it, because
// rediscluster imports this package.
var DialCluster func(t testing.TB, url string) Source

// TestStoreOnCluster runs all cases on a cluster, where every key of a call must be in one slot.
func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	runTables(t, &target{src: DialCluster(t, cluster.URL()), prefix: "app:", tagged: true, dial: cluster.Dial})
}

// TestUsed finds a task wherever it is, and its remains.
func TestUsed(t *testing.T) {
	t.Parallel()
	for name, put := range map[string][]any{
		"pending":     {"RPUSH", "", "m"},
		"suspect":     {"RPUSH", "_suspects", "m"},
		"claimed":     {"HSET", "_processing:w", "1-1", "m"},
		"of legacy":   {"HSET", "_processing", "w", "m"},
		"scheduled":   {"ZADD", "_scheduled", 1, "id"},
		"retrying":    {"ZADD", "_retry", 1, "id"},
		"parked":      {"ZADD", "_parked", 1, "id"},
		"archived":    {"ZADD", "_archived", 1, "id"},
		"completed":   {"ZADD", "_completed", 1, "id"},
		"in a group":  {"ZADD", "_groups", 1, "g"},
		"periodic":    {"HSET", "_periodic", "entry", "e"},
		"counted":     {"HSET", "_stats:20250102", "processed", 1},
		"before":      {"HSET", "_stats:20241006", "processed", 1}, // 88 days ago
		"":            {"SET", "_sweeper", "w"},
		"by a worker": {"HSET", "_processing:other", "1-1", "m"},
	} {
		b := redistest.NewBench(t, redistest.Shared(t))
		s := fixedDay(NewStore(dialled(t, b.Server.URL()), "", b.Name))
		b.Do(put[0].(string), append([]any{b.Name + put[1].(string)}, put[2:]...)...) //nolint:errcheck // as above
		used, err := s.Used(t.Context(), "w")
		b.Must(err)
		if want := name != "" && name != "by a worker"; used != want {
			t.Errorf("%s: used %v, expected %v", name, used, want)
		}
	}
}
