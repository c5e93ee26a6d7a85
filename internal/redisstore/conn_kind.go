package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

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
