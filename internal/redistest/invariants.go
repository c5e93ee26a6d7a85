package redistest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Invariants says how far a queue may be from rest. The zero value allows tasks in every state, each pending one with
// its notification.
type Invariants struct {
	// Idle expects that nothing is pending or claimed and that no worker is known.
	Idle bool
	// MoreNoti and LessNoti are how many notifications the queue may have beyond, or short of, one for each pending
	// task.
	MoreNoti, LessNoti int
}

// layout is what the key table of the design allows: suffix, type, and whether the key has a time to live. A suffix
// that ends in a colon is followed by a worker's id or a day.
var layout = []layoutRow{
	{"", "list", false},
	{"_noti", "list", false},
	{"_wake", "list", false},
	{"_suspects", "list", false},
	{"_suspects_noti", "list", false},
	{"_rewait:", "list", true},
	{"_processing", "hash", false},
	{"_processing:", "hash", false},
	{"_claims:", "hash", false},
	{"_worker:", "string", true},
	{"_workers", "set", false},
	{"_scheduled", "zset", false},
	{"_retry", "zset", false},
	{"_archived", "zset", false},
	{"_completed", "zset", false},
	{"_results", "hash", false},
	{"_control", "hash", false},
	{"_functions", "hash", false},
	{"_parked", "zset", false},
	{"_tasks", "hash", false},
	{"_info", "hash", false},
	{"_deaths", "hash", true},
	{"_stats:", "hash", true},
	{"_sweeper", "string", true},
	{"_mode", "string", false},
	{"_periodic", "hash", false},
	{"_ticks", "zset", false},
	{"_history:", "list", false},
	{"_locks", "hash", false},
	{"_revoked", "zset", false},
	{"_groups", "zset", false},
	{"_gathered", "hash", false},
	{"_metrics:", "hash", true},
	{"_group:", "list", false},
}

type layoutRow struct {
	suffix, kind string
	expires      bool
}

// filedIn are the sets that hold the id of a task whose message is in the tasks hash.
var filedIn = []string{"_scheduled", "_retry", "_archived", "_parked"}

// queueView is what the checks look at: the keys of a queue and those contents that are ids, never messages.
type queueView struct {
	name  string
	types map[string]string   // suffix to type
	ttls  map[string]int64    // suffix to PTTL
	sizes map[string]int64    // suffix of a list to length
	ids   map[string][]string // suffix of a hash, zset or set to its fields or members
	asked map[string]bool     // suffixes of the keys that were read, whether or not they exist
	locks map[string]string   // the fields of the locks hash with their values
}

// CheckInvariants reports with t.Errorf whatever is inconsistent between the keys of a queue. conn must reach the node
// that holds them. What it reads, it reads at one moment, so the queue may be in use.
func CheckInvariants(t testing.TB, conn redis.Conn, queue string, allow Invariants) {
	t.Helper()
	v := viewOf(t, conn, queue)
	for _, problem := range slices.Concat(v.checkLayout(), v.checkNoti(allow), v.checkTasks(), v.checkLocks(),
		v.checkClaims(), v.checkGroups()) {
		t.Errorf("queue %s: %s", queue, problem)
	}
	if allow.Idle {
		for _, problem := range v.checkIdle() {
			t.Errorf("queue %s is not idle: %s", queue, problem)
		}
	}
}

func viewOf(t testing.TB, conn redis.Conn, queue string) *queueView {
	t.Helper()
	v := &queueView{
		name: queue, types: map[string]string{}, ttls: map[string]int64{}, sizes: map[string]int64{},
		ids: map[string][]string{}, asked: map[string]bool{},
	}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("redistest: reading queue %s: %v", queue, err)
		}
	}
	keys := keysToRead(t, conn, queue)
	// The type of a key decides how it can be read, so it is read first; a key whose type changes in between fails the
	// transaction.
	kinds := typesOf(t, conn, keys)
	fail(conn.Send("MULTI"))
	for i, key := range keys {
		fail(conn.Send("TYPE", key))
		fail(conn.Send("PTTL", key))
		switch kindOr(kinds[i], queue, key) {
		case "list":
			fail(conn.Send("LLEN", key))
		case "hash":
			if key == queue+"_locks" {
				fail(conn.Send("HGETALL", key))
			} else {
				fail(conn.Send("HKEYS", key))
			}
		case "zset":
			fail(conn.Send("ZRANGE", key, 0, -1))
		case "set":
			fail(conn.Send("SMEMBERS", key))
		default:
			fail(conn.Send("EXISTS", key))
		}
	}
	replies, err := redis.Values(conn.Do("EXEC"))
	fail(err)
	for i, key := range keys {
		suffix := strings.TrimPrefix(key, queue)
		v.asked[suffix] = true
		kind, err := redis.String(replies[3*i], nil)
		fail(err)
		if kind == "none" {
			continue
		}
		v.types[suffix] = kind
		v.ttls[suffix], err = redis.Int64(replies[3*i+1], nil)
		fail(err)
		switch content := replies[3*i+2].(type) {
		case int64:
			v.sizes[suffix] = content
		case []any:
			v.ids[suffix], err = redis.Strings(content, nil)
			fail(err)
			if suffix == "_locks" && kind == "hash" {
				v.locks, err = redis.StringMap(content, nil)
				fail(err)
				v.ids[suffix] = slices.Collect(maps.Keys(v.locks))
			}
		case redis.Error:
			t.Errorf("queue %s: key %s: %v", queue, key, content)
		}
	}
	return v
}

// keysToRead returns the keys of the table and those that a scan finds, without duplicates. A scan may pass a key just
// before it appears, so the claim times of every worker with claims and the calls of every group are read in any case.
func keysToRead(t testing.TB, conn redis.Conn, queue string) []string {
	t.Helper()
	keys := map[string]bool{}
	for _, l := range layout {
		if !strings.HasSuffix(l.suffix, ":") {
			keys[queue+l.suffix] = true
		}
	}
	for _, key := range keysOf(t, conn, queue) {
		keys[key] = true
		if worker, ok := strings.CutPrefix(key, queue+"_processing:"); ok {
			keys[queue+"_claims:"+worker] = true
		}
	}
	// A group that comes later than this look has a list that is not read, and is not judged by it. Keys of another
	// type the layout tells.
	due, _ := redis.Strings(conn.Do("ZRANGE", queue+"_groups", 0, -1))
	known, _ := redis.Strings(conn.Do("HKEYS", queue+"_gathered"))
	for _, group := range append(due, known...) {
		keys[queue+"_group:"+group] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// kindOr returns the type to expect of a key that does not exist yet.
func kindOr(kind, queue, key string) string {
	if kind != "none" {
		return kind
	}
	if l := layoutOf(strings.TrimPrefix(key, queue)); l >= 0 {
		return layout[l].kind
	}
	return "none"
}

// layoutOf returns the row of the table for a suffix, -1 if there is none.
func layoutOf(suffix string) int {
	for i, l := range layout {
		if strings.HasSuffix(l.suffix, ":") {
			if strings.HasPrefix(suffix, l.suffix) && len(suffix) > len(l.suffix) {
				return i
			}
		} else if suffix == l.suffix {
			return i
		}
	}
	return -1
}

// suffixes returns the present suffixes that begin with prefix, sorted.
func (v *queueView) suffixes(prefix string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.types)),
		func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

// checkLayout compares keys with the key table.
func (v *queueView) checkLayout() (problems []string) {
	for _, suffix := range v.suffixes("") {
		i := layoutOf(suffix)
		if i < 0 {
			problems = append(problems, fmt.Sprintf("key N%s is not in the key table", suffix))
			continue
		}
		l := layout[i]
		if v.types[suffix] != l.kind {
			problems = append(problems,
				fmt.Sprintf("key N%s: expected a %s, found a %s", suffix, l.kind, v.types[suffix]))
		}
		if expires := v.ttls[suffix] >= 0; expires != l.expires {
			problems = append(problems,
				fmt.Sprintf("key N%s: expected a time to live: %v, found: %v", suffix, l.expires, expires))
		}
	}
	if n := v.sizes["_wake"]; n > 1 {
		problems = append(problems, fmt.Sprintf("N_wake has %d elements, expected at most 1", n))
	}
	return problems
}

// checkNoti compares the numbers of pending tasks and of notifications.
func (v *queueView) checkNoti(allow Invariants) []string {
	pending, noti := v.sizes[""], v.sizes["_noti"]
	if noti > pending+int64(allow.MoreNoti) || noti < pending-int64(allow.LessNoti) {
		return []string{fmt.Sprintf("%d tasks are pending with %d notifications; %d more and %d less are allowed",
			pending, noti, allow.MoreNoti, allow.LessNoti)}
	}
	if suspects, noti := v.sizes["_suspects"], v.sizes["_suspects_noti"]; noti > suspects+int64(allow.MoreNoti) ||
		suspects > 0 && noti == 0 && allow.LessNoti == 0 {
		return []string{fmt.Sprintf("%d suspects are pending with %d notifications", suspects, noti)}
	}
	return nil
}

// checkTasks looks for ids that are in no place, or in two.
func (v *queueView) checkTasks() (problems []string) {
	places := map[string][]string{}
	for _, set := range filedIn {
		for _, id := range v.ids[set] {
			places[id] = append(places[id], "N"+set)
		}
	}
	known := map[string]bool{}
	for _, id := range v.ids["_tasks"] {
		known[id] = true
		if len(places[id]) == 0 {
			problems = append(problems, fmt.Sprintf("task %q has a message in N_tasks but is in no set", id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(places)) {
		if len(places[id]) > 1 {
			problems = append(problems, fmt.Sprintf("task %q is in %s at once", id, strings.Join(places[id], " and ")))
		}
		if !known[id] {
			problems = append(problems,
				fmt.Sprintf("task %q is in %s but has no message in N_tasks", id, places[id][0]))
		}
	}
	for _, id := range v.ids["_info"] {
		if !known[id] {
			problems = append(problems, fmt.Sprintf("N_info tells of task %q, which is not in N_tasks", id))
		}
	}
	for _, id := range v.ids["_completed"] {
		if !slices.Contains(v.ids["_results"], id) {
			problems = append(problems,
				fmt.Sprintf("task %q is in N_completed but nothing is kept of it in N_results", id))
		}
	}
	return problems
}

// checkLocks looks for locks without a time at which they expire, or without a holder.
func (v *queueView) checkLocks() (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(v.locks)) {
		expiry, holder, _ := strings.Cut(v.locks[name], " ")
		if ms, err := strconv.ParseInt(expiry, 10, 64); err != nil || ms <= 0 || holder == "" {
			problems = append(problems, fmt.Sprintf(
				"%q in N_locks: expected a time in ms and the id of a task, found %q", name, v.locks[name]))
		}
	}
	return problems
}

// checkClaims looks for claims that no sweeper would find, and for claims without a time.
func (v *queueView) checkClaims() (problems []string) {
	for _, suffix := range v.suffixes("_processing:") {
		worker := strings.TrimPrefix(suffix, "_processing:")
		if !slices.Contains(v.ids["_workers"], worker) {
			problems = append(problems,
				fmt.Sprintf("worker %s holds %d claims but is not in N_workers, so it would never be swept",
					worker, len(v.ids[suffix])))
		}
		for _, token := range v.ids[suffix] {
			batch, _, ok := strings.Cut(token, "-")
			if !ok {
				problems = append(problems, fmt.Sprintf("worker %s: token %q, expected <batch>-<i>", worker, token))
			} else if !slices.Contains(v.ids["_claims:"+worker], batch) {
				problems = append(problems,
					fmt.Sprintf("worker %s: claim %q has no claim time in N_claims:%s", worker, token, worker))
			}
		}
	}
	for _, suffix := range v.suffixes("_worker:") {
		if worker := strings.TrimPrefix(suffix, "_worker:"); !slices.Contains(v.ids["_workers"], worker) {
			problems = append(problems, fmt.Sprintf("worker %s has a heartbeat but is not in N_workers", worker))
		}
	}
	return problems
}

// checkGroups looks for groups that nobody would ever fire, and for such without calls.
func (v *queueView) checkGroups() (problems []string) {
	for _, suffix := range v.suffixes("_group:") {
		if group := strings.TrimPrefix(suffix, "_group:"); !slices.Contains(v.ids["_groups"], group) {
			problems = append(problems,
				fmt.Sprintf("group %s has %d calls but is not in N_groups, so it would never be fired", group,
					v.sizes[suffix]))
		}
	}
	for _, set := range []string{"_groups", "_gathered"} {
		for _, group := range v.ids[set] {
			if suffix := "_group:" + group; v.asked[suffix] && v.types[suffix] == "" {
				problems = append(problems, fmt.Sprintf("group %s is in N%s but has no calls", group, set))
			}
		}
	}
	return problems
}

// checkIdle lists what an idle queue does not have.
func (v *queueView) checkIdle() (problems []string) {
	for _, suffix := range []string{"", "_noti", "_suspects", "_suspects_noti"} {
		if n := v.sizes[suffix]; n > 0 {
			problems = append(problems, fmt.Sprintf("N%s has %d elements", suffix, n))
		}
	}
	for _, prefix := range []string{"_processing", "_claims:", "_workers", "_worker:"} {
		for _, suffix := range v.suffixes(prefix) {
			problems = append(problems,
				fmt.Sprintf("N%s exists with %d entries", suffix, max(len(v.ids[suffix]), int(v.sizes[suffix]))))
		}
	}
	return slices.Compact(problems)
}
