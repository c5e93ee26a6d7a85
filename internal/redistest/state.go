package redistest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// State is everything that Redis holds of one queue: the part of the key behind the queue's name ("" for the list of
// pending messages, "_noti", "_processing:w1") to its value. A value is a string, List, Hash, Zset or Set, or one of
// them within Expiring.
type State map[string]any

type (
	// List is the value of a list.
	List []string
	// Hash is the value of a hash.
	Hash map[string]string
	// Zset is the value of a sorted set: members to scores. All scores of a queue are whole numbers.
	Zset map[string]int64
	// Set is the value of a set. Dump sorts it.
	Set []string
)

// Expiring is the value of a key that has a time to live.
type Expiring struct {
	Value any
	For   time.Duration // given to Seed, 0 means a minute; Dump leaves it 0, see TTL
}

// Seed writes state into Redis. The queue must be empty.
func Seed(t testing.TB, conn redis.Conn, queue string, state State) {
	t.Helper()
	if old := keysOf(t, conn, queue); len(old) > 0 {
		t.Fatalf("redistest: queue %s is to be seeded but has keys: %q", queue, old)
	}
	for suffix, value := range state {
		key := queue + suffix
		ttl := time.Duration(0)
		if e, ok := value.(Expiring); ok {
			value, ttl = e.Value, e.For
			if ttl == 0 {
				ttl = time.Minute
			}
		}
		args := redis.Args{key}
		var cmd string
		switch v := value.(type) {
		case string:
			cmd, args = "SET", args.Add(v)
		case List:
			cmd, args = "RPUSH", args.AddFlat([]string(v))
		case Hash:
			cmd, args = "HSET", args.AddFlat(map[string]string(v))
		case Set:
			cmd, args = "SADD", args.AddFlat([]string(v))
		case Zset:
			cmd = "ZADD"
			for member, score := range v {
				args = args.Add(score, member)
			}
		default:
			t.Fatalf("redistest: seed %s: expected string, List, Hash, Zset, Set or Expiring, found %T", key, value)
		}
		if err := conn.Send(cmd, args...); err != nil {
			t.Fatalf("redistest: seed %s: %v", key, err)
		}
		if ttl > 0 {
			if err := conn.Send("PEXPIRE", key, ttl.Milliseconds()); err != nil {
				t.Fatalf("redistest: seed %s: %v", key, err)
			}
		}
	}
	if _, err := conn.Do("PING"); err != nil { // Do returns the first error of those before it, too
		t.Fatalf("redistest: seed %s: %v", queue, err)
	}
}

// Delete deletes all keys of the queue.
func Delete(t testing.TB, conn redis.Conn, queue string) {
	t.Helper()
	if keys := keysOf(t, conn, queue); len(keys) > 0 {
		if _, err := conn.Do("DEL", redis.Args{}.AddFlat(keys)...); err != nil {
			t.Errorf("redistest: delete the keys of %s: %v", queue, err)
		}
	}
}

// Dump reads all keys of the queue at one moment.
func Dump(t testing.TB, conn redis.Conn, queue string) State {
	t.Helper()
	keys := keysOf(t, conn, queue)
	types := typesOf(t, conn, keys)
	send := func(cmd string, args ...any) {
		if err := conn.Send(cmd, args...); err != nil {
			t.Fatalf("redistest: %s: %v", cmd, err)
		}
	}
	send("MULTI")
	for i, key := range keys {
		switch types[i] {
		case "list":
			send("LRANGE", key, 0, -1)
		case "hash":
			send("HGETALL", key)
		case "zset":
			send("ZRANGE", key, 0, -1, "WITHSCORES")
		case "set":
			send("SMEMBERS", key)
		default:
			send("GET", key)
		}
		send("PTTL", key)
	}
	replies, err := redis.Values(conn.Do("EXEC"))
	if err != nil {
		t.Fatalf("redistest: dump %s: %v", queue, err)
	}
	state := State{}
	for i, key := range keys {
		ttl, err := redis.Int64(replies[2*i+1], nil)
		if err != nil {
			t.Fatalf("redistest: PTTL %s: %v", key, err)
		}
		if ttl == -2 { // gone in the meantime
			continue
		}
		value, err := decode(types[i], replies[2*i])
		if err != nil {
			t.Fatalf("redistest: dump %s: %v", key, err)
		}
		if ttl >= 0 {
			value = Expiring{Value: value}
		}
		state[strings.TrimPrefix(key, queue)] = value
	}
	return state
}

// typesOf returns the types of keys. It asks for all of them in one round trip.
func typesOf(t testing.TB, conn redis.Conn, keys []string) []string {
	t.Helper()
	if len(keys) == 0 {
		return nil
	}
	for _, key := range keys {
		if err := conn.Send("TYPE", key); err != nil {
			t.Fatalf("redistest: TYPE %s: %v", key, err)
		}
	}
	types, err := redis.Strings(conn.Do(""))
	if err != nil {
		t.Fatalf("redistest: TYPE of %q: %v", keys, err)
	}
	return types
}

func decode(kind string, reply any) (any, error) {
	switch kind {
	case "list":
		v, err := redis.Strings(reply, nil)
		return List(v), err
	case "hash":
		v, err := redis.StringMap(reply, nil)
		return Hash(v), err
	case "zset":
		// Some servers write large round numbers as 4e+12.
		scores, err := redis.Float64Map(reply, nil)
		v := Zset{}
		for member, score := range scores {
			v[member] = int64(score)
		}
		return v, err
	case "set":
		v, err := redis.Strings(reply, nil)
		slices.Sort(v)
		return Set(v), err
	default:
		return redis.String(reply, nil)
	}
}

// TTL returns how long the key has left to live, 0 if it has no end or does not exist.
func TTL(t testing.TB, conn redis.Conn, key string) time.Duration {
	t.Helper()
	ms, err := redis.Int64(conn.Do("PTTL", key))
	if err != nil {
		t.Fatalf("redistest: PTTL %s: %v", key, err)
	}
	return time.Duration(max(ms, 0)) * time.Millisecond
}

// Diff describes how got differs from want, one line for each key, "" if it does not. The time to live of a wanted
// Expiring is not compared.
func Diff(got, want State) string {
	keys := slices.Collect(maps.Keys(got))
	for key := range want {
		if _, ok := got[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		g, w := got[key], want[key]
		if e, ok := w.(Expiring); ok {
			e.For = 0
			w = e
		}
		if s, ok := w.(Set); ok {
			w = Set(slices.Sorted(slices.Values(s)))
		}
		if !reflect.DeepEqual(g, w) {
			fmt.Fprintf(&b, "key N%s:\n  expected %s\n  found    %s\n", key, show(w), show(g))
		}
	}
	return b.String()
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case Expiring:
		return "with expiry: " + show(v.Value)
	case Zset:
		return fmt.Sprintf("Zset %v", map[string]int64(v))
	default:
		return fmt.Sprintf("%s %q", strings.TrimPrefix(fmt.Sprintf("%T", v), "redistest."), v)
	}
}

// keysOf returns the sorted names of all keys of the queue.
func keysOf(t testing.TB, conn redis.Conn, queue string) []string {
	t.Helper()
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(queue)
	found := map[string]bool{}
	for cursor := "0"; ; {
		reply, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", escaped+"*", "COUNT", 1000))
		if err != nil {
			t.Fatalf("redistest: SCAN: %v", err)
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			t.Fatalf("redistest: SCAN: %v", err)
		}
		for _, key := range keys {
			// Queue "a.1" has nothing to do with the keys of queue "a.12".
			if rest := key[len(queue):]; rest == "" || rest[0] == '_' {
				found[key] = true
			}
		}
		if cursor == "0" {
			return slices.Sorted(maps.Keys(found))
		}
	}
}
