package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

func TestSeedAndDump(t *testing.T) {
	conn := Shared(t).Dial(t)
	q := Name(t)
	state := State{
		"":              List{"a", "b", "a"},
		"_noti":         List{"1", "1", "1"},
		"_processing:w": Hash{"1-1": "m\x00\xff", "1-2": ""},
		"_scheduled":    Zset{"id": 1_700_000_000_000, "id2": 3},
		"_workers":      Set{"v", "w"},
		"_worker:w":     Expiring{Value: "x", For: 5 * time.Second},
		"_stats:1":      Expiring{Value: Hash{"processed": "3"}},
		"_mode":         "plain",
	}
	Seed(t, conn, q, state)
	// Keys with similar names belong to other queues.
	Seed(t, conn, q+"0", State{"": List{"other"}, "_noti": List{"1"}})
	if d := Diff(Dump(t, conn, q), state); d != "" {
		t.Errorf("seeded and dumped states differ:\n%s", d)
	}
	if ttl := TTL(t, conn, q+"_worker:w"); ttl <= 0 || ttl > 5*time.Second {
		t.Errorf("seeded time to live %v", ttl)
	}
	if ttl := TTL(t, conn, q+"_stats:1"); ttl <= 50*time.Second {
		t.Errorf("default time to live %v", ttl)
	}
	if ttl := TTL(t, conn, q); ttl != 0 {
		t.Errorf("time to live of a key without one: %v", ttl)
	}
	got := (&recorder{TB: t}).run(func(tb testing.TB) { tb.Helper(); Seed(tb, conn, q, state) })
	if !strings.Contains(got, "has keys") {
		t.Errorf("seeding twice: %q", got)
	}
	got = (&recorder{TB: t}).run(func(tb testing.TB) { tb.Helper(); Seed(tb, conn, Name(t), State{"": 1}) })
	if !strings.Contains(got, "found int") {
		t.Errorf("seeding a number: %q", got)
	}
}

func TestDumpOfNothing(t *testing.T) {
	if state := Dump(t, Shared(t).Dial(t), Name(t)); len(state) != 0 {
		t.Errorf("found %v", state)
	}
}

func TestDumpGlobCharacters(t *testing.T) {
	conn := Shared(t).Dial(t)
	q := Name(t) + `*?[ab]\`
	Seed(t, conn, q, State{"": List{"mine"}, "_noti": List{"1"}})
	Seed(t, conn, strings.Replace(q, "*", "x", 1), State{"": List{"not mine"}})
	if state := Dump(t, conn, q); len(state) != 2 {
		t.Errorf("found %v", state)
	}
}

func TestDumpPagesThroughManyKeys(t *testing.T) {
	conn := Start(t).Dial(t)
	q := Name(t)
	for i := range 3000 {
		if err := conn.Send("SET", fmt.Sprintf("%s_worker:%d", q, i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Do(""); err != nil {
		t.Fatal(err)
	}
	if n := len(Dump(t, conn, q)); n != 3000 {
		t.Errorf("found %d keys", n)
	}
}

func TestDiff(t *testing.T) {
	want := State{
		"": List{"a"}, "_noti": List{"1"}, "_workers": Set{"b", "a"},
		"_worker:a": Expiring{Value: "", For: time.Hour},
	}
	if d := Diff(State{"": List{"a"}, "_noti": List{"1"}, "_workers": Set{"a", "b"}, "_worker:a": Expiring{Value: ""}},
		want); d != "" {
		t.Errorf("equal states differ:\n%s", d)
	}
	got := Diff(State{"": List{"b"}, "_retry": Zset{"i": 1}, "_workers": Set{"a", "b"}, "_worker:a": ""}, want)
	for _, part := range []string{
		"key N:\n  expected List [\"a\"]\n  found    List [\"b\"]\n",
		"key N_noti:\n  expected List [\"1\"]\n  found    nothing\n",
		"key N_retry:\n  expected nothing\n  found    Zset",
		"key N_worker:a:\n  expected with expiry: string \"\"\n  found    string \"\"\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("expected %q in:\n%s", part, got)
		}
	}
	if strings.Contains(got, "_workers") {
		t.Errorf("equal sets differ:\n%s", got)
	}
}

// rest is a consistent queue with something in every place.
func rest() State {
	return State{
		"":               List{"m1", "m2"},
		"_noti":          List{"1", "1"},
		"_wake":          List{"1"},
		"_processing":    Hash{"77": "legacy"},
		"_processing:w1": Hash{"4-1": "m3", "4-2": "m4", "5-1": "m5"},
		"_claims:w1":     Hash{"4": "1700000000000", "5": "1700000000001"},
		"_worker:w1":     Expiring{Value: "x"},
		"_workers":       Set{"w1", "w2"},
		"_scheduled":     Zset{"a": 1},
		"_retry":         Zset{"b": 1},
		"_archived":      Zset{"c": 1},
		"_parked":        Zset{"d": 1},
		"_tasks":         Hash{"a": "ma", "b": "mb", "c": "mc", "d": "md"},
		"_info":          Hash{"b": "ib", "c": "ic"},
		"_deaths":        Expiring{Value: Hash{"sha": "1"}},
		"_stats:1":       Expiring{Value: Hash{"processed": "1"}},
		"_sweeper":       Expiring{Value: "s"},
		"_mode":          "plain",
	}
}

func TestInvariants(t *testing.T) {
	conn := Shared(t).Dial(t)
	tests := []struct {
		name   string
		change func(State)
		allow  Invariants
		want   []string // parts of the reports, in order; nil: consistent
	}{
		{name: "consistent"},
		{"empty and idle", func(s State) { clear(s) }, Invariants{Idle: true}, nil},
		{
			"at rest and idle",
			func(s State) {
				for _, k := range []string{
					"", "_noti", "_processing", "_processing:w1", "_claims:w1", "_worker:w1",
					"_workers",
				} {
					delete(s, k)
				}
			},
			Invariants{Idle: true},
			nil,
		},
		{"busy, not idle", nil, Invariants{Idle: true}, []string{
			"N has 2", "N_noti has 2", "N_processing exists with 1", "N_processing:w1 exists with 3",
			"N_claims:w1 exists with 2",
			"N_workers exists with 2", "N_worker:w1 exists",
		}},
		{
			"unknown key", func(s State) { s["_strange"] = "x" },
			Invariants{},
			[]string{"N_strange is not in the key table"},
		},
		{"unknown worker key", func(s State) { s["_processing:"] = Hash{"1-1": "m"} }, Invariants{}, []string{
			"N_processing: is not in the key table", "worker  holds 1 claims", "has no claim time",
		}},
		{
			"wrong type", func(s State) { s["_deaths"] = Expiring{Value: Set{"x"}} },
			Invariants{},
			[]string{"N_deaths: expected a hash, found a set"},
		},
		{
			"no expiry", func(s State) { s["_worker:w1"] = "x" },
			Invariants{},
			[]string{"N_worker:w1: expected a time to live: true, found: false"},
		},
		{
			"expiry", func(s State) { s["_tasks"] = Expiring{Value: s["_tasks"]} },
			Invariants{},
			[]string{"N_tasks: expected a time to live: false"},
		},
		{
			"two wake-ups", func(s State) { s["_wake"] = List{"1", "1"} },
			Invariants{},
			[]string{"N_wake has 2 elements"},
		},
		{
			"notification lost", func(s State) { s["_noti"] = List{"1"} },
			Invariants{MoreNoti: 1},
			[]string{"2 tasks are pending with 1 not"},
		},
		{"notification lost, allowed", func(s State) { s["_noti"] = List{"1"} }, Invariants{LessNoti: 1}, nil},
		{
			"notification too many", func(s State) { s["_noti"] = List{"1", "1", "1"} },
			Invariants{LessNoti: 1},
			[]string{"2 tasks are pending with 3"},
		},
		{
			"notification too many, allowed", func(s State) { s["_noti"] = List{"1", "1", "1"} },
			Invariants{MoreNoti: 1},
			nil,
		},
		{
			"all notifications lost", func(s State) { delete(s, "_noti") },
			Invariants{},
			[]string{"2 tasks are pending with 0"},
		},
		{
			"in two sets", func(s State) { s["_retry"] = Zset{"b": 1, "a": 1} },
			Invariants{},
			[]string{`"a" is in N_scheduled and N_retry at once`},
		},
		{
			"without message", func(s State) { s["_parked"] = Zset{"d": 1, "e": 1} },
			Invariants{},
			[]string{`"e" is in N_parked but has no message`},
		},
		{
			"orphan", func(s State) { delete(s, "_archived") },
			Invariants{},
			[]string{`"c" has a message in N_tasks but is in no set`},
		},
		{"completed", func(s State) {
			s["_completed"], s["_results"] = Zset{"done": 1}, Hash{"done": "r", "active": "p"}
		}, Invariants{}, nil},
		{
			"completed without result", func(s State) { s["_completed"] = Zset{"done": 1} },
			Invariants{},
			[]string{`task "done" is in N_completed but nothing`},
		},
		{
			"info left over", func(s State) { s["_info"] = Hash{"z": "i"} },
			Invariants{},
			[]string{`N_info tells of task "z"`},
		},
		{
			"lock", func(s State) { s["_locks"] = Hash{"k:l": "1763690000000 a", "#a": "1763690000000 a"} },
			Invariants{},
			nil,
		},
		{"lock that never lapses", func(s State) {
			s["_locks"] = Hash{"k:l": "a", "k:m": "1763690000000 b"}
		}, Invariants{}, []string{
			`"k:l" in N_locks: expected a time in ms and the id of a task, found "a"`,
		}},
		{
			"lock of nobody", func(s State) { s["_locks"] = Hash{"k:l": "1763690000000 "} },
			Invariants{},
			[]string{`"k:l" in N_locks: expected a time`},
		},
		{"unknown worker", func(s State) { s["_workers"] = Set{"w2"} }, Invariants{}, []string{
			"worker w1 holds 3 claims but is not in N_workers", "worker w1 has a heartbeat but is not in",
		}},
		{"claim without time", func(s State) { s["_claims:w1"] = Hash{"5": "1"} }, Invariants{}, []string{
			`claim "4-1" has no claim time`, `claim "4-2" has no claim time`,
		}},
		{
			"odd token", func(s State) { s["_processing:w1"] = Hash{"4": "m"} },
			Invariants{},
			[]string{`token "4", expected <batch>-<i>`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := Name(t)
			state := rest()
			if test.change != nil {
				test.change(state)
			}
			Seed(t, conn, q, state)
			got := (&recorder{TB: t}).run(func(tb testing.TB) { tb.Helper(); CheckInvariants(tb, conn, q, test.allow) })
			reports := strings.FieldsFunc(got, func(r rune) bool { return r == '\n' })
			if len(reports) != len(test.want) {
				t.Fatalf("expected %d reports, found %d:\n%s", len(test.want), len(reports), got)
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("expected %q in:\n%s", part, got)
				}
			}
		})
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	if len(c.Nodes) != 3 || c.URL() != "redis://"+strings.Join(c.Addrs(), ",") {
		t.Fatalf("%d nodes, %s", len(c.Nodes), c.URL())
	}
	used := map[*Server]bool{}
	for i := range 50 {
		key := fmt.Sprintf("{key%d}", i)
		conn := c.Dial(t, key)
		if _, err := conn.Do("SET", key, i); err != nil {
			t.Errorf("%s on the node that should serve it: %v", key, err)
		}
		used[c.NodeOf(t, key)] = true
	}
	if len(used) != 3 {
		t.Errorf("50 keys used %d nodes", len(used))
	}
	for _, node := range c.Nodes {
		if _, err := node.Dial(t).Do("SET", "{key0}", "x"); node != c.NodeOf(t, "{key0}") &&
			(err == nil || !strings.HasPrefix(err.Error(), "MOVED")) {
			t.Errorf("a node that does not serve the key: %v", err)
		}
	}
	q := "{" + Name(t) + "}"
	Seed(t, c.Dial(t, q), q, rest())
	CheckInvariants(t, c.Dial(t, q), q, Invariants{})
	if d := Diff(Dump(t, c.Dial(t, q), q), rest()); d != "" {
		t.Error(d)
	}
	if _, err := redis.Int(c.Dial(t, q).Do("LLEN", q)); err != nil {
		t.Error(err)
	}
}
