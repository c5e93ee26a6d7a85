package redisstore

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// ScriptTimes is how long the scripts of a server have run in it, those of other programs included.
type ScriptTimes struct {
	Calls int64
	Total time.Duration
	// Quantiles are shares of all calls, in percent, with how long these took at most; nil if the server does not
	// measure them.
	Quantiles map[float64]time.Duration
}

// ReadScriptTimes asks a server. What it does not tell is zero.
func ReadScriptTimes(ctx context.Context, src Source, server Server) (t ScriptTimes, err error) {
	conn, err := Connect(ctx, src, server.Key)
	if err != nil {
		return t, ConnError(err)
	}
	defer conn.Close()
	for _, section := range []string{"commandstats", "latencystats"} {
		text, err := redis.String(do(ctx, conn, CallTimeout, "INFO", section))
		if err != nil {
			return t, fmt.Errorf("delayed: INFO %s: %w", section, err)
		}
		t.read(parseServerInfo(text))
	}
	return t, nil
}

// read takes over a section: cmdstat_evalsha:calls=2,usec=9,... and
// latency_percentiles_usec_evalsha:p50=1.003,p99=2.007.
func (t *ScriptTimes) read(info map[string]string) {
	for _, command := range []string{"eval", "evalsha"} {
		for field := range strings.SplitSeq(info["cmdstat_"+command], ",") {
			name, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil:
			case name == "calls":
				t.Calls += n
			case name == "usec":
				t.Total += time.Duration(min(n, maxSum)) * time.Microsecond
			}
		}
	}
	for field := range strings.SplitSeq(info["latency_percentiles_usec_evalsha"], ",") {
		name, value, _ := strings.Cut(field, "=")
		percent, err1 := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
		us, err2 := strconv.ParseFloat(value, 64)
		if err1 != nil || err2 != nil || !strings.HasPrefix(name, "p") {
			continue
		}
		if t.Quantiles == nil {
			t.Quantiles = map[float64]time.Duration{}
		}
		t.Quantiles[percent] = time.Duration(us * float64(time.Microsecond))
	}
}

// What UnfitSetting.Name can be. The documentation of delayed.SettingError says what each means.
const (
	settingEviction = "eviction"
	settingReplica  = "replica"
	settingScripts  = "scripts"
	settingVersion  = "version"
)

// SettingNames are the names of all settings that may be unfit.
var SettingNames = []string{settingEviction, settingReplica, settingScripts, settingVersion}

// Server is a Redis server: a key that it holds, and its name in messages.
type Server struct{ Key, Name string }

// Address returns the address in the name.
func (s Server) Address() string { return strings.TrimPrefix(s.Name, "Redis at ") }

// Server returns the server of a queue, at the address where.
func (s *Store) Server(where string) Server { return Server{s.keys.list, "Redis at " + where} }

// Servers returns the masters of a cluster, or the single server at the address where.
func Servers(ctx context.Context, src Source, key, where string) ([]Server, error) {
	if src.Slot("0") == src.Slot("1") {
		return []Server{{key, "Redis at " + where}}, nil
	}
	conn, err := Connect(ctx, src, key)
	if err != nil {
		return nil, ConnError(err)
	}
	defer conn.Close()
	ranges, err := redis.Values(do(ctx, conn, CallTimeout, "CLUSTER", "SLOTS"))
	if err != nil {
		return nil, fmt.Errorf("delayed: CLUSTER SLOTS: %w", err)
	}
	owners := map[int]string{}
	for _, item := range ranges {
		var first, last int
		var master []any
		fields, err := redis.Values(item, nil)
		if err == nil {
			_, err = redis.Scan(fields, &first, &last, &master)
		}
		if err != nil || len(master) < 2 {
			return nil, fmt.Errorf("delayed: CLUSTER SLOTS: unexpected reply %v", item)
		}
		host, _ := redis.String(master[0], nil)
		port, _ := redis.Int(master[1], nil)
		for slot := first; slot <= last; slot++ {
			owners[slot] = fmt.Sprintf("%s:%d", host, port)
		}
	}
	return serversOf(src, owners), nil
}

// serversOf returns the servers that own slots.
func serversOf(src Source, owners map[int]string) (servers []Server) {
	const tries = 1 << 16 // four for each slot
	seen := map[string]bool{"": true}
	for i := range tries {
		key := strconv.Itoa(i)
		if owner := owners[src.Slot(key)]; !seen[owner] {
			seen[owner] = true
			servers = append(servers, Server{key, "Redis at " + owner})
		}
	}
	return servers
}

// Findings are the faults in the settings of one server.
type Findings struct {
	Unfit    []UnfitSetting
	Warnings []string // sentences for the log
}

// UnfitSetting is a setting with which a server cannot hold tasks, or may lose them.
type UnfitSetting struct {
	Name string // one of SettingNames
	Text string // which server, what was found, what was expected and what to do
}

func (f *Findings) refuse(name, format string, args ...any) {
	f.Unfit = append(f.Unfit, UnfitSetting{name, fmt.Sprintf(format, args...)})
}

func (f *Findings) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// Inspect asks a server for its settings, and checks them. It returns an error if the server did not answer.
func Inspect(ctx context.Context, src Source, server Server) (f Findings, err error) {
	conn, err := Connect(ctx, src, server.Key)
	if err != nil {
		return f, ConnError(err)
	}
	defer conn.Close()
	text, err := redis.String(do(ctx, conn, CallTimeout, "INFO"))
	switch {
	case passing(err):
		return f, fmt.Errorf("delayed: INFO: %w", err)
	case err != nil:
		f.warn("%s does not answer INFO (%v), so that its version, its maxmemory-policy, its role and whether it "+
			"writes an append-only file are unknown", server.Name, err)
	default:
		f.check(server.Name, parseServerInfo(text))
	}
	if _, err = do(ctx, conn, CallTimeout, "EVAL", "return 1", 0); passing(err) {
		return f, fmt.Errorf("delayed: EVAL: %w", err)
	} else if err != nil {
		f.refuse(settingScripts, "%s runs no Lua scripts: %v; expected that the user may call EVAL and EVALSHA",
			server.Name, err)
	}
	return f, nil
}

// passing reports whether an error says nothing about a server's settings, because the server does not answer now.
func passing(err error) bool {
	switch answer.Code(err) {
	case "":
		return err != nil
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOAUTH":
		return true
	default:
		return false
	}
}

// parseServerInfo reads the answer to INFO.
func parseServerInfo(text string) map[string]string {
	fields := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// check adds what is wrong with a server, given its answer to INFO.
func (f *Findings) check(server string, info map[string]string) {
	var unknown []string
	switch version := info["redis_version"]; {
	case version == "":
		unknown = append(unknown, "redis_version")
	case olderThan(version, 6, 2):
		f.refuse(settingVersion,
			"%s is version %s: expected 6.2 or later, which has the commands that the scripts call",
			server, version)
	}
	switch info["role"] {
	case "master":
	case "":
		unknown = append(unknown, "role")
	default:
		f.refuse(settingReplica,
			"%s is a replica: expected the master, as a replica refuses writes or loses them; connect "+
				"to the master, with package redissentinel where Sentinel knows it", server)
	}
	switch policy := info["maxmemory_policy"]; policy {
	case "noeviction":
	case "":
		unknown = append(unknown, "maxmemory_policy")
	default:
		f.refuse(settingEviction, "%s has maxmemory-policy %s: expected noeviction, because an eviction deletes tasks "+
			"without a trace; CONFIG SET maxmemory-policy noeviction", server, policy)
	}
	switch aof := info["aof_enabled"]; {
	case aof == "" && info["server_name"] != "embedded":
		unknown = append(unknown, "aof_enabled")
	case aof == "0" && info["server_name"] != "embedded": // package embedded never writes to disk
		f.warn("%s writes no append-only file: tasks since its last snapshot are lost when it stops; "+
			"CONFIG SET appendonly yes", server)
	}
	if len(unknown) > 0 {
		f.warn("%s does not tell %s in INFO: make sure that its version is 6.2 or later, that it is a master, that "+
			"its maxmemory-policy is noeviction and that it writes an append-only file", server,
			strings.Join(unknown, ", "))
	}
}

// olderThan reports whether a version such as 7.4.1 is older than major.minor. It reports false for a version that it
// cannot parse.
func olderThan(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a < major || a == major && b < minor)
}
