package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; nothing secret depends on it
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/lua"
)

// Script is one file of lua/. Its header describes keys and arguments; a test compares them with the body.
type Script struct {
	Name   string
	Reads  bool // it changes nothing
	Source string
	Sha    string
}

// Scripts is the table of all scripts by name.
var Scripts = loadScripts()

func loadScripts() map[string]*Script {
	scripts := map[string]*Script{}
	for _, name := range lua.Names() {
		source := lua.Source(name)
		sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
		scripts[name] = &Script{
			Name: name, Reads: strings.Contains(source, "Reads only"), Source: source, Sha: hex.EncodeToString(sum[:]),
		}
	}
	return scripts
}

// evalshaArgs returns the arguments of EVALSHA.
func (s *Script) evalshaArgs(keys []string, args []any) []any {
	all := make([]any, 0, 2+len(keys)+len(args))
	all = append(all, s.Sha, len(keys))
	return append(appendAll(all, keys), args...)
}

// appendAll appends a list to arguments.
func appendAll[T any](args []any, list []T) []any {
	for _, v := range list {
		args = append(args, v)
	}
	return args
}

// argsOf returns arguments that begin with head and end with a list.
func argsOf[T any](list []T, head ...any) []any {
	return appendAll(slices.Grow(head, len(list)), list)
}

// send runs the script on conn, with arguments that evalshaArgs has made. It sends the script a second time only when
// Redis answers that it does not know it, so the script never runs twice. timeout bounds the wait for the answer; 0
// leaves it to the connection.
func (s *Script) send(ctx context.Context, conn redis.Conn, timeout time.Duration, all []any) (any, error) {
	reply, err := do(ctx, conn, timeout, "EVALSHA", all...)
	if err == nil {
		return reply, nil
	}
	if answer.Code(err) == "NOSCRIPT" {
		all[0] = s.Source
		if reply, err = do(ctx, conn, timeout, "EVAL", all...); err == nil {
			return reply, nil
		}
	}
	return nil, s.Explain(err)
}

// errNoAnswer says that a script that only reads got no answer.
var errNoAnswer = errors.New("no answer of Redis")

// Explain distinguishes errors after which nothing was written from those after which that is unknown: these wrap
// ErrUnknown.
func (s *Script) Explain(err error) error {
	switch code := answer.Code(err); {
	case code == "" && s.Reads:
		return fmt.Errorf("delayed: %s: %w: %w", s.Name, errNoAnswer, err)
	case code == "":
		return fmt.Errorf("%w: %s: %w", ErrUnknown, s.Name, err)
	case code == "OOM", code == "MISCONF":
		return fmt.Errorf("%w: %s: %w", ErrFull, s.Name, err)
	}
	return fmt.Errorf("delayed: %s: %w", s.Name, err)
}

// transient are the codes of errors that Redis answers for a short time, while it starts, is busy or fails over.
var transient = []string{
	"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "MOVED", "ASK", "READONLY", "UNBLOCKED", "NOREPLICAS",
	"UNKILLABLE",
}

// Refused reports whether trying again is useless, because Redis has answered with a lasting error, such as a wrong
// password or a key of another type, or because the handle is closed.
func Refused(err error) bool {
	var refusal redis.Error
	if !errors.As(err, &refusal) {
		return errors.Is(err, ErrClosed) || errors.Is(err, ErrNoID) || errors.Is(err, ErrReply)
	}
	return !slices.Contains(transient, answer.Code(refusal)) &&
		!strings.HasPrefix(string(refusal), "ERR max number of clients")
}

// MayHaveRun reports whether a script may have run, in whole or in part, in spite of the error: its reply was lost, or
// it failed half-way.
func MayHaveRun(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrReply) || answer.Is(err)
}

// do sends one command. An error about the type of a key says which key.
func do(ctx context.Context, conn redis.Conn, timeout time.Duration, cmd string, args ...any) (any, error) {
	reply, err := rawDo(ctx, conn, timeout, cmd, args...)
	if err != nil {
		err = wrongType(conn, cmd, args, ofOtherKind(ctx, conn, timeout, err))
	}
	return reply, err
}

// rawDo sends one command. When ctx ends during the wait for the answer, the connection is closed.
func rawDo(ctx context.Context, conn redis.Conn, timeout time.Duration, cmd string, args ...any) (any, error) {
	if ctx.Done() == nil {
		if timeout > 0 {
			return redis.DoWithTimeout(conn, timeout, cmd, args...)
		}
		return conn.Do(cmd, args...)
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return redis.DoContext(conn, ctx, cmd, args...)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// NeedsMemory reports whether a full Redis refuses a script, which is given by its SHA-1 or its source; false for text
// that is no script of ours.
func NeedsMemory(called string) bool {
	for _, s := range Scripts {
		if s.Sha == called || s.Source == called {
			return strings.Contains(s.Source, "A full Redis refuses it") // as its header says
		}
	}
	return false
}

// Errors of the store. Package delayed publishes them, and documents them there.
var (
	// ErrUnknown says that the connection broke after the request was sent. Redis may have carried it out or not.
	ErrUnknown = errors.New("delayed: unknown whether Redis carried out the request")
	// ErrFull says that Redis refuses writes because its memory or its disk is full.
	ErrFull = errors.New("delayed: Redis refuses writes")
	// ErrNoID says that a task cannot be looked up because its message carries no id.
	ErrNoID = errors.New("delayed: task has no id")
	// ErrClosed says that the handle on Redis is closed, or that Run was called before.
	ErrClosed = errors.New("delayed: closed")
	// ErrDuplicate says that another task has the id or the lock.
	ErrDuplicate = errors.New("delayed: duplicate task")
)

// ErrHandleClosed is the error of calls after the handle was closed.
var ErrHandleClosed = fmt.Errorf("%w: the handle on Redis is closed", ErrClosed)

// ErrReply says that a script's reply does not have the form that its header describes.
var ErrReply = errors.New("delayed: unexpected reply of a script; another version of the scripts may be in use")
