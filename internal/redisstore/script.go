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

// Script is one file of lua/. Its header describes keys and arguments; a test compares header, body and this table.
type Script struct {
	Name   string
	keys   int  // number of KEYS
	each   bool // keys is the number for each queue
	Reads  bool // it changes nothing
	Source string
	Sha    string
}

// Scripts is the table of all scripts by name.
var Scripts = map[string]*Script{}

// The scripts, with the number of their keys.
var (
	ScriptEnqueue    = newScript("enqueue", 2)
	scriptSchedule   = newScript("schedule", 3)
	scriptEnlist     = newScript("enlist", 12)
	scriptUnlock     = newScript("unlock", 2)
	ScriptClaim      = newScript("claim", 7)
	ScriptAck        = newScript("ack", 4)
	ScriptShelve     = newScript("shelve", 11)
	ScriptComplete   = newScript("complete", 7)
	scriptProgress   = newScript("progress", 3)
	scriptExpire     = newScript("expire", 2)
	scriptRerun      = newScript("rerun", 7)
	scriptDelete     = newScript("delete", 5)
	scriptLook       = newScript("look", 8)
	ScriptRelease    = newScript("release", 4)
	ScriptBeat       = newScriptEach("beat", 3)
	ScriptRegister   = newScript("register", 3)
	scriptUnregister = newScript("unregister", 6)
	scriptForget     = newScript("forget", 6)
	scriptMark       = newScript("mark", 1)
	scriptRewait     = newScript("rewait", 1)
	scriptSweep      = newScript("sweep", 13)
	scriptSurvey     = newScriptEach("survey", 5)
	scriptLives      = newScriptEach("lives", 1)
	scriptRepair     = newScript("repair", 2)
	scriptCheck      = newScriptEach("check", 6)
	scriptMove       = newScript("move", 6)
	scriptUnpark     = newScript("unpark", 7)
	scriptFields     = newScript("fields", 1)
	scriptPage       = newScript("page", 1)
	scriptCondemn    = newScript("condemn", 5)
	scriptTrim       = newScript("trim", 4)
	scriptLapse      = newScript("lapse", 1)
	ScriptMode       = newScript("mode", 1)
	scriptReform     = newScript("reform", 9)
	ScriptAgenda     = newScript("agenda", 2)
	ScriptEntry      = newScript("entry", 3)
	ScriptTick       = newScript("tick", 7)
	scriptGather     = newScriptEach("gather", 4)
	scriptRipe       = newScript("ripe", 1)
	scriptPeek       = newScript("peek", 3)
	scriptFire       = newScript("fire", 6)
	scriptHasten     = newScript("hasten", 2)
	scriptControl    = newScript("control", 1)
	scriptJoin       = newScript("join", 6)
	scriptCancel     = newScript("cancel", 12)
	scriptAnnul      = newScript("annul", 7)
	scriptPardon     = newScript("pardon", 2)
	scriptPublish    = newScript("publish", 2)
	scriptKnown      = newScriptEach("known", 2)
	scriptOverview   = newScriptEach("overview", 12)
	scriptShelf      = newScript("shelf", 1)
	scriptWithdraw   = newScript("withdraw", 10)
	scriptRefile     = newScript("refile", 7)
	scriptAudit      = newScript("audit", 1)
	scriptLengths    = newScriptEach("lengths", 1)
	scriptRoster     = newScriptEach("roster", 3)
	scriptWorkers    = newScriptEach("workers", 1)
	scriptAnnounce   = newScript("announce", 1)
	scriptAcquire    = newScript("acquire", 1)
	scriptMetrics    = newScript("metrics", 1)
)

func newScript(name string, keys int) *Script {
	source, err := lua.Files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // a name in the table above is misspelt
	}
	sum := sha1.Sum(source) //nolint:gosec // see the import
	s := &Script{Name: name, keys: keys, Source: string(source), Sha: hex.EncodeToString(sum[:])}
	s.Reads = strings.Contains(s.Source, "Reads only")
	Scripts[name] = s
	return s
}

func newScriptEach(name string, keys int) *Script {
	s := newScript(name, keys)
	s.each = true
	return s
}

// eval runs the script on conn. It sends the script a second time only when Redis answers that it does not know it, so
// the script never runs twice. timeout bounds the wait for the answer; 0 leaves it to the connection.
func (s *Script) eval(
	ctx context.Context, conn redis.Conn, timeout time.Duration, keys []string, args []any,
) (any, error) {
	return s.send(ctx, conn, timeout, s.evalshaArgs(keys, args))
}

// evalshaArgs returns the arguments of EVALSHA.
func (s *Script) evalshaArgs(keys []string, args []any) []any {
	all := make([]any, 0, 2+len(keys)+len(args))
	all = append(all, s.Sha, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return append(all, args...)
}

// send is eval with arguments that evalshaArgs has made.
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

// Explain tells errors after which nothing was written from those after which that is unknown, which wrap ErrUnknown.
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
			header, _, _ := strings.Cut(s.Source, "\nlocal ")
			return strings.Contains(header, "A full Redis refuses it")
		}
	}
	return false
}
