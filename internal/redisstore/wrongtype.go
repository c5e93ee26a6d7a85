package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// keyTypes maps what a key adds to its queue's name to the key's type. lua/README.md says what each holds.
var keyTypes = map[string]string{
	"_suspects": "list", "_suspects_noti": "list", "_rewait:": "list", "_functions": "hash",
	"_noti": "list", "_wake": "list", "_processing": "hash", "_workers": "set",
	"_scheduled": "zset", "_retry": "zset", "_parked": "zset", "_archived": "zset", "_completed": "zset",
	"_results": "hash", "_tasks": "hash", "_info": "hash", "_deaths": "hash", "_sweeper": "string", "_mode": "string",
	"_control": "hash", "_locks": "hash", "_revoked": "zset", "_groups": "zset", "_gathered": "hash",
	"_periodic": "hash", "_ticks": "zset",
	"_processing:": "hash", "_claims:": "hash", "_worker:": "string", "_stats:": "hash", "_group:": "list",
	"_history:": "list", "_metrics:": "hash",
	registryName: "hash", auditName: "list", semaphoreInfix: "zset",
}

// maxTyped bounds the keys whose types are read after an error.
const maxTyped = 64

// TypeOfKey returns the type that a key of a queue must have.
func TypeOfKey(key string) string {
	for _, infix := range keyInfixes {
		if strings.Contains(key, infix) {
			return keyTypes[infix]
		}
	}
	for _, suffix := range slices.Concat(keySuffixes, sharedKeys) {
		if strings.HasSuffix(key, suffix) {
			return keyTypes[suffix]
		}
	}
	return "list" // pending tasks
}

// IsWrongType reports whether Redis has refused a command because a key is of another type than it needs.
func IsWrongType(err error) bool {
	return answer.Code(err) == "WRONGTYPE"
}

// perStore reads something about each of the stores of one slot, with calls for so many stores as most says. If keys of
// a store are of another type, the error says so, found has nothing in its place, and what it has of the other stores
// is right. After other errors found is nil.
func perStore[T any](
	stores []*Store, most int, nothing T, read func(page []*Store) ([]T, error),
) (found []T, err error) {
	var faults []error
	for page := range slices.Chunk(stores, most) {
		some, err := read(page)
		switch {
		case err == nil:
		case !IsWrongType(err):
			return nil, err
		case len(page) == 1:
			some, faults = []T{nothing}, append(faults, err)
		default:
			half := (len(page) + 1) / 2 // a search for the store in question
			some, err = perStore(page, half, nothing, read)
			if some == nil {
				return nil, err
			}
			faults = append(faults, err)
		}
		found = append(found, some...)
	}
	return found, errors.Join(faults...)
}

// wrongType adds to an error WRONGTYPE which keys of the command have the wrong type.
func wrongType(conn redis.Conn, cmd string, args []any, err error) error {
	if !IsWrongType(err) {
		return err
	}
	keys := keysOfCommand(cmd, args)
	var wrong []string
	for i, found := range typesOf(conn, keys) {
		if want := TypeOfKey(keys[i]); found != "" && found != "none" && found != want {
			wrong = append(wrong, fmt.Sprintf("key %q is a %s, expected a %s", keys[i], found, want))
		}
	}
	if len(wrong) == 0 {
		return fmt.Errorf("one of the keys %q is of another type than expected, and TYPE does not say which: %w",
			keys, err)
	}
	return fmt.Errorf("%s: another program writes there; rename or delete its key, or give the queue another name or "+
		"key prefix: %w",
		strings.Join(wrong, "; "), err)
}

// typesOf reads the types of keys in one round trip; "" where Redis does not answer.
func typesOf(conn redis.Conn, keys []string) []string {
	types := make([]string, len(keys))
	for _, key := range keys {
		if conn.Send("TYPE", key) != nil {
			return types
		}
	}
	if conn.Flush() != nil {
		return types
	}
	for i := range types {
		reply, err := redis.ReceiveWithTimeout(conn, CallTimeout)
		if err != nil && !answer.Is(err) {
			break
		}
		types[i], _ = redis.String(reply, err)
	}
	return types
}

// keysOfCommand returns the first keys of a command or script.
func keysOfCommand(cmd string, args []any) (keys []string) {
	switch isScript := cmd == "EVAL" || cmd == "EVALSHA"; {
	case isScript && len(args) >= 2:
		n, _ := args[1].(int)
		args = args[2:min(2+n, len(args))]
	case cmd != "BLPOP" && cmd != "MGET" && cmd != "EXISTS":
		args = args[:min(1, len(args))]
	}
	for _, a := range args[:min(maxTyped, len(args))] {
		if key, ok := a.(string); ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

const (
	useCluster  = "the server is a node of a Redis Cluster: connect with rediscluster.Dial, and name queues like {mail}"
	loadLua     = "the server has no Lua, in which the scripts are written: load its module lua, or use another server"
	useSentinel = "the server is a Sentinel: connect with redissentinel.Dial, which asks it for the master"
)

// ofOtherKind adds advice to the error of a command if a handle for a single server has met a node of a cluster, a
// Sentinel or an old server. It looks at bare errors only: sources that follow redirections wrap theirs.
func ofOtherKind(ctx context.Context, conn redis.Conn, timeout time.Duration, err error) error {
	refusal, ok := err.(redis.Error) //nolint:errorlint // see above
	if !ok {
		return err
	}
	switch answer.Code(refusal) {
	case "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN":
		return fmt.Errorf("%s: %w", useCluster, err)
	}
	if strings.Contains(string(refusal), "is not allowed in cluster mode") {
		return fmt.Errorf("%s, without a database: %w", useCluster, err)
	}
	if strings.HasPrefix(string(refusal), noEngine) {
		return fmt.Errorf("%s: %w", loadLua, err)
	}
	if !strings.HasPrefix(string(refusal), "ERR unknown command") {
		return err
	}
	short, _, _ := strings.Cut(string(refusal), ", with args") // the rest repeats the task
	refusal = redis.Error(short)
	if conn != nil {
		role, err := redis.Values(rawDo(ctx, conn, timeout, "ROLE"))
		if kind, _ := redis.String(first(role), err); kind == "sentinel" {
			return fmt.Errorf("%s: %w", useSentinel, refusal)
		}
	}
	return fmt.Errorf("the server, or a proxy before it, does not have what a Redis of version 6.2 has: %w", refusal)
}

// noEngine is the beginning of what Valkey answers to EVAL when its module lua is not loaded.
const noEngine = "ERR Could not find scripting engine"

// LacksScripts reports whether an error says that the server cannot run scripts at all, so that it is useless to try
// again.
func LacksScripts(err error) bool {
	var refusal redis.Error
	if !errors.As(err, &refusal) {
		return false
	}
	command, unknown := strings.CutPrefix(string(refusal), "ERR unknown command ")
	return unknown && strings.HasPrefix(strings.TrimLeft(command, "'`"), "EVAL") ||
		strings.HasPrefix(string(refusal), noEngine)
}

func first(values []any) any {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}
