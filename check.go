package delayed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
)

// What SettingError.Name can be.
const (
	settingEviction = "eviction"
	settingReplica  = "replica"
	settingScripts  = "scripts"
	settingVersion  = "version"
)

var settingNames = []string{settingEviction, settingReplica, settingScripts, settingVersion}

// SettingError says why a Redis server must not, or cannot, hold tasks.
type SettingError struct {
	// Name is eviction (maxmemory-policy is not noeviction), replica (the server is a replica), scripts (it runs no
	// Lua scripts for this user) or version (it is older than Redis 6.2). WorkerConfig.Allow and Redis.Check permit
	// the setting by this name.
	Name string
	// Text says which server, what was found, what was expected and what to do.
	Text string
}

// Error implements error.
func (e *SettingError) Error() string {
	return fmt.Sprintf("delayed: %s; to go on all the same, allow %q by name", e.Text, e.Name)
}

// Check asks Redis, in a cluster each of its masters, whether its settings are fit for tasks. The error joins a
// *SettingError for each setting that is not and whose name is not among the allowed ones, or says that Redis could not
// be asked. Warnings are sentences for the log: settings that were allowed, that Redis writes no append-only file, or
// what could not be found out because the user may not ask INFO or a service leaves it out.
//
// Worker.Run does the same for the servers of its queues.
func (r *Redis) Check(ctx context.Context, allow ...string) (warnings []string, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkContext(ctx), checkAllowed("Redis.Check", allow)); err != nil {
		return nil, err
	}
	places, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	return checkServers(ctx, r.loops, places, allow)
}

// checkAllowed returns an error for a name that no SettingError has.
func checkAllowed(where string, allow []string) error {
	for _, name := range allow {
		if !slices.Contains(settingNames, name) {
			return fmt.Errorf("delayed: %s: unknown name %q of a setting: expected %s", where, name,
				strings.Join(settingNames, ", "))
		}
	}
	return nil
}

// serverAt is a server, given by a key that it holds.
type serverAt struct{ key, name string }

// servers returns the masters of a cluster, or the one server that there is.
func (r *Redis) servers(ctx context.Context) ([]serverAt, error) {
	one := serverAt{r.prefix, "Redis at " + r.where}
	if r.loops.Slot("0") == r.loops.Slot("1") {
		return []serverAt{one}, nil
	}
	conn, err := redisstore.Connect(ctx, r.loops, r.prefix)
	if err != nil {
		return nil, redisstore.ConnError(err)
	}
	defer conn.Close()
	ranges, err := redis.Values(redisstore.Do(ctx, conn, redisstore.CallTimeout, "CLUSTER", "SLOTS"))
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
	return r.keysOf(owners), nil
}

// keysOf returns a key for each of the servers that own slots.
func (r *Redis) keysOf(owners map[int]string) (places []serverAt) {
	const tries = 1 << 16 // four for each slot
	seen := map[string]bool{"": true}
	for i := range tries {
		key := strconv.Itoa(i)
		if owner := owners[r.loops.Slot(key)]; !seen[owner] {
			seen[owner] = true
			places = append(places, serverAt{key, "Redis at " + owner})
		}
	}
	return places
}

// checkServers is Redis.Check for servers.
func checkServers(ctx context.Context, src Source, places []serverAt, allow []string) (warnings []string, err error) {
	var errs []error
	for _, p := range places {
		f, err := inspect(ctx, src, p)
		if err != nil {
			return nil, err
		}
		for _, e := range f.errs {
			if slices.Contains(allow, e.Name) {
				warnings = append(warnings, e.Text+" (allowed)")
			} else {
				errs = append(errs, e)
			}
		}
		warnings = append(warnings, f.warnings...)
	}
	return warnings, errors.Join(errs...)
}

// findings is what was found out about one server.
type findings struct {
	errs     []*SettingError
	warnings []string
}

func (f *findings) refuse(name, format string, args ...any) {
	f.errs = append(f.errs, &SettingError{name, fmt.Sprintf(format, args...)})
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

// inspect asks one server. The error says that it did not answer.
func inspect(ctx context.Context, src Source, p serverAt) (f findings, err error) {
	conn, err := redisstore.Connect(ctx, src, p.key)
	if err != nil {
		return f, redisstore.ConnError(err)
	}
	defer conn.Close()
	text, err := redis.String(redisstore.Do(ctx, conn, redisstore.CallTimeout, "INFO"))
	switch {
	case passing(err):
		return f, fmt.Errorf("delayed: INFO: %w", err)
	case err != nil:
		f.warn("%s does not answer INFO (%v), so that its version, its maxmemory-policy, its role and whether it "+
			"writes "+
			"an append-only file are unknown", p.name, err)
	default:
		f.judge(p.name, parseServerInfo(text))
	}
	if _, err = redisstore.Do(ctx, conn, redisstore.CallTimeout, "EVAL", "return 1", 0); passing(err) {
		return f, fmt.Errorf("delayed: EVAL: %w", err)
	} else if err != nil {
		f.refuse(settingScripts, "%s runs no Lua scripts: %v; expected that the user may call EVAL and EVALSHA", p.name,
			err)
	}
	return f, nil
}

// passing reports whether an error says nothing about a server's settings: it does not answer, or not now.
func passing(err error) bool {
	var answer redis.Error
	if err == nil || !errors.As(err, &answer) {
		return err != nil
	}
	code, _, _ := strings.Cut(string(answer), " ")
	switch code {
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

// judge says what is wrong with a server that has told of itself.
func (f *findings) judge(server string, info map[string]string) {
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
	case aof == "0" && info["server_name"] != "embedded": // which promises to forget everything
		f.warn("%s writes no append-only file: tasks since its last snapshot are lost when it stops; "+
			"CONFIG SET appendonly yes", server)
	}
	if len(unknown) > 0 {
		f.warn("%s does not tell %s in INFO: make sure that its version is 6.2 or later, that it is a master, that its "+
			"maxmemory-policy is noeviction and that it writes an append-only file", server,
			strings.Join(unknown, ", "))
	}
}

// olderThan reports whether a version such as 7.4.1 is older than major.minor. One that it cannot read is not.
func olderThan(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a < major || a == major && b < minor)
}
