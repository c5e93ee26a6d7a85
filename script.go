package delayed

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

	"github.com/godelayed/delayed/lua"
)

// script is one file of lua/. Its header says what its keys and arguments are; a test holds header, body and this table
// together.
type script struct {
	name   string
	keys   int  // number of KEYS
	each   bool // keys is meant for each queue
	reads  bool // it changes nothing, as its header says
	source string
	sha    string
}

// scripts is the table of all scripts by name.
var scripts = map[string]*script{}

var (
	scriptEnqueue    = newScript("enqueue", 2)
	scriptSchedule   = newScript("schedule", 3)
	scriptEnlist     = newScript("enlist", 13)
	scriptUnlock     = newScript("unlock", 3)
	scriptClaim      = newScript("claim", 7)
	scriptAck        = newScript("ack", 4)
	scriptShelve     = newScript("shelve", 10)
	scriptComplete   = newScript("complete", 8)
	scriptProgress   = newScript("progress", 3)
	scriptExpire     = newScript("expire", 2)
	scriptRerun      = newScript("rerun", 8)
	scriptDelete     = newScript("delete", 5)
	scriptLook       = newScript("look", 8)
	scriptRelease    = newScript("release", 4)
	scriptBeat       = newScriptEach("beat", 3)
	scriptRegister   = newScript("register", 3)
	scriptUnregister = newScript("unregister", 6)
	scriptForget     = newScript("forget", 6)
	scriptMark       = newScript("mark", 1)
	scriptRewait     = newScript("rewait", 1)
	scriptSweep      = newScript("sweep", 14)
	scriptSurvey     = newScriptEach("survey", 5)
	scriptLives      = newScriptEach("lives", 1)
	scriptRepair     = newScript("repair", 2)
	scriptCheck      = newScriptEach("check", 6)
	scriptMove       = newScript("move", 5)
	scriptUnpark     = newScript("unpark", 7)
	scriptFields     = newScript("fields", 1)
	scriptPage       = newScript("page", 1)
	scriptCondemn    = newScript("condemn", 6)
	scriptTrim       = newScript("trim", 4)
	scriptLapse      = newScript("lapse", 2)
	scriptMode       = newScript("mode", 1)
	scriptReform     = newScript("reform", 9)
	scriptAgenda     = newScript("agenda", 2)
	scriptEntry      = newScript("entry", 3)
	scriptTick       = newScript("tick", 7)
	scriptGather     = newScript("gather", 4)
	scriptRipe       = newScript("ripe", 1)
	scriptPeek       = newScript("peek", 3)
	scriptFire       = newScript("fire", 6)
	scriptControl    = newScript("control", 1)
	scriptJoin       = newScript("join", 6)
	scriptCancel     = newScript("cancel", 13)
	scriptAnnul      = newScript("annul", 8)
	scriptPardon     = newScript("pardon", 2)
	scriptPublish    = newScript("publish", 2)
)

func newScript(name string, keys int) *script {
	source, err := lua.Files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // the file is embedded: only a misspelt table can be the reason
	}
	sum := sha1.Sum(source) //nolint:gosec // see the import
	s := &script{name: name, keys: keys, source: string(source), sha: hex.EncodeToString(sum[:])}
	s.reads = strings.Contains(s.source, "Reads only")
	scripts[name] = s
	return s
}

func newScriptEach(name string, keys int) *script {
	s := newScript(name, keys)
	s.each = true
	return s
}

// run evaluates the script on conn. It is sent a second time only when Redis answers that it does not know it, so it
// never runs twice. timeout bounds the wait for the answer; 0 leaves it to the connection.
func (s *script) run(
	ctx context.Context, conn redis.Conn, timeout time.Duration, keys []string, args []any,
) (any, error) {
	return s.send(ctx, conn, timeout, s.call(keys, args))
}

// call returns the arguments of EVALSHA.
func (s *script) call(keys []string, args []any) []any {
	all := make([]any, 0, 2+len(keys)+len(args))
	all = append(all, s.sha, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return append(all, args...)
}

// send is run with the arguments of EVALSHA: the script's SHA-1 and the number of keys come before them.
func (s *script) send(ctx context.Context, conn redis.Conn, timeout time.Duration, all []any) (any, error) {
	reply, err := do(ctx, conn, timeout, "EVALSHA", all...)
	if err == nil {
		return reply, nil
	}
	var answer redis.Error
	if errors.As(err, &answer) && strings.HasPrefix(string(answer), "NOSCRIPT") {
		all[0] = s.source
		if reply, err = do(ctx, conn, timeout, "EVAL", all...); err == nil {
			return reply, nil
		}
	}
	return nil, s.explain(err)
}

// errNoAnswer says that a question that changes nothing got no answer.
var errNoAnswer = errors.New("Redis has not answered")

// explain sorts errors into those after which nothing was written and those after which nobody knows.
func (s *script) explain(err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) {
		if s.reads {
			return fmt.Errorf("delayed: %s: %w: %w", s.name, errNoAnswer, err)
		}
		return fmt.Errorf("%w: %s: %w", ErrUnknown, s.name, err)
	}
	text := string(answer)
	if strings.HasPrefix(text, "OOM") || strings.Contains(text, "MISCONF") || strings.Contains(text, "-OOM") ||
		strings.Contains(text, "OOM command not allowed") {
		return fmt.Errorf("%w: %s: %w", ErrFull, s.name, err)
	}
	return fmt.Errorf("delayed: %s: %w", s.name, err)
}

// transient are the beginnings of answers that Redis gives while it comes back or is busy, and not for long.
var transient = []string{
	"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "MOVED", "ASK", "READONLY",
	"UNKILLABLE", "ERR max number of clients",
}

// refused says whether Redis has answered with an error that asking again does not change: of its ACL, a wrong
// password, a key of another type; or whether the handle is closed.
func refused(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return errors.Is(err, ErrClosed) || errors.Is(err, ErrNoID) || errors.Is(err, errReply)
	}
	return !slices.ContainsFunc(transient, func(start string) bool { return strings.HasPrefix(string(answer), start) })
}

// mayHaveRun says whether an error leaves open that a script has run, in whole or in part: a reply was lost, or the
// script failed on its way.
func mayHaveRun(err error) bool {
	var answer redis.Error
	return errors.Is(err, ErrUnknown) || errors.Is(err, errReply) || errors.As(err, &answer)
}

// do sends one command. An error about the type of a key says which key.
func do(ctx context.Context, conn redis.Conn, timeout time.Duration, cmd string, args ...any) (any, error) {
	reply, err := rawDo(ctx, conn, timeout, cmd, args...)
	if err != nil {
		err = wrongType(conn, cmd, args, ofOtherKind(ctx, conn, timeout, err))
	}
	return reply, err
}

// rawDo sends one command. A context that cannot end costs nothing; one that can ends the wait, and with it the
// connection.
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
