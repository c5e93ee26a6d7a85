package redistest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// replyLimit is how long the commands of this package wait for a reply.
const replyLimit = 30 * time.Second

// Dial returns a connection that is closed at the end of the test.
func (s *Server) Dial(t testing.TB, opts ...redis.DialOption) redis.Conn {
	t.Helper()
	conn, err := redis.Dial("tcp", s.Addr(), append([]redis.DialOption{redis.DialReadTimeout(replyLimit)}, opts...)...)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Pool returns a pool without limits that is closed at the end of the test. The options are those of its connections.
func (s *Server) Pool(t testing.TB, opts ...redis.DialOption) *redis.Pool {
	t.Helper()
	opts = append([]redis.DialOption{redis.DialReadTimeout(replyLimit)}, opts...)
	pool := &redis.Pool{
		MaxIdle: 100,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", s.Addr(), opts...)
		},
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// Do runs one command on a connection of its own and ends the test if it fails.
func (s *Server) Do(t testing.TB, cmd string, args ...any) any {
	t.Helper()
	conn, err := redis.Dial("tcp", s.Addr(), redis.DialReadTimeout(replyLimit))
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	defer conn.Close()
	reply, err := conn.Do(cmd, args...)
	if err != nil {
		t.Fatalf("redistest: %s: %v", cmd, err)
	}
	return reply
}

// FlushScripts makes the server forget all scripts, as a restart does: the next EVALSHA is answered with NOSCRIPT.
func (s *Server) FlushScripts(t testing.TB) {
	t.Helper()
	s.Do(t, "SCRIPT", "FLUSH")
}

// Commands holds how often the server has executed each command, by name in lower case; a script counts as one evalsha
// plus the commands it calls. Subcommands such as "config|get" have names of their own.
type Commands map[string]int64

// CommandStats returns the counts since the start of the server. Subtract two of them with Since.
func (s *Server) CommandStats(t testing.TB) Commands {
	t.Helper()
	conn := s.Dial(t)
	defer conn.Close()
	return CommandStatsOn(t, conn)
}

// CommandStatsOn is Server.CommandStats on a connection that exists, for those that ask often.
func CommandStatsOn(t testing.TB, conn redis.Conn) Commands {
	t.Helper()
	info, err := redis.String(conn.Do("INFO", "commandstats"))
	if err != nil {
		t.Fatalf("redistest: INFO commandstats: %v", err)
	}
	stats := Commands{}
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		number, _, _ := strings.Cut(rest, ",")
		if calls, err := strconv.ParseInt(number, 10, 64); err == nil {
			stats[name] = calls
		}
	}
	return stats
}

// Since returns the calls that c counts beyond before, without the INFO that counted them.
func (c Commands) Since(before Commands) Commands {
	diff := Commands{}
	for name, calls := range c {
		if n := calls - before[name]; n > 0 {
			diff[name] = n
		}
	}
	if diff["info"]--; diff["info"] <= 0 {
		delete(diff, "info")
	}
	return diff
}

// Total returns the number of all calls except those of the named commands.
func (c Commands) Total(except ...string) int64 {
	var n int64
	for name, calls := range c {
		if !slices.Contains(except, name) {
			n += calls
		}
	}
	return n
}

// String lists the commands, most frequent first.
func (c Commands) String() string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if c[a] != c[b] {
			return int(c[b] - c[a])
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s=%d ", name, c[name])
	}
	return strings.TrimSpace(b.String())
}

// Slow is a command that took longer than the limit given to WatchSlow.
type Slow struct {
	Took time.Duration
	Args []string // the command first; long arguments are cut by Redis
}

// WatchSlow empties the slow log and makes the server put into it every command, and script as a whole, that takes
// limit or longer.
func (s *Server) WatchSlow(t testing.TB, limit time.Duration) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", limit.Microseconds())
	s.Do(t, "CONFIG", "SET", "slowlog-max-len", 1000)
	s.Do(t, "SLOWLOG", "RESET")
}

// Waited returns how long the server has waited for a processor since its start, where the system counts that: what the
// slow log holds may have taken its time there.
func (s *Server) Waited() time.Duration {
	waited, _ := s.process().Waited()
	return waited
}

// SlowLog returns what the slow log holds, slowest first.
func (s *Server) SlowLog(t testing.TB) []Slow {
	t.Helper()
	entries, err := redis.Values(s.Do(t, "SLOWLOG", "GET", 1000), nil)
	if err != nil {
		t.Fatalf("redistest: SLOWLOG: %v", err)
	}
	var slow []Slow
	for _, entry := range entries {
		fields, err := redis.Values(entry, nil)
		if err != nil || len(fields) < 4 {
			t.Fatalf("redistest: SLOWLOG: expected entries of four fields and more, found %v, %v", entry, err)
		}
		us, err := redis.Int64(fields[2], nil)
		args, err2 := redis.Strings(fields[3], nil)
		if err != nil || err2 != nil {
			t.Fatalf("redistest: SLOWLOG: malformed entry %v: %v, %v", fields, err, err2)
		}
		slow = append(slow, Slow{time.Duration(us) * time.Microsecond, args})
	}
	slices.SortStableFunc(slow, func(a, b Slow) int { return int(b.Took - a.Took) })
	return slow
}
