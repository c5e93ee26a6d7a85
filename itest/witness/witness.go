// Package witness sits between a worker and Redis and records the token with which each task was claimed, and how Redis
// answered each ack. It recognizes the scripts by their text, so it still finds them when they change, but not when
// claims or acks move to another script.
package witness

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/lua"
)

// Witness is a source of connections that records calls. It is safe for concurrent use.
type Witness struct {
	pool   *redis.Pool
	ledger *ledger.Writer
	taskOf func(message []byte) string
	claim  script
	ack    script

	mu     sync.Mutex // protects tokens
	tokens map[string]string
}

var _ delayed.Source = (*Witness)(nil)

// script is a script as it is called: by text or by its SHA-1.
type script struct{ text, sha string }

func load(name string) script {
	text := lua.Source(name)
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// New returns a witness of all calls through pool. Acks are written to the ledger. taskOf returns how a test
// names the task of a message.
func New(pool *redis.Pool, w *ledger.Writer, taskOf func(message []byte) string) *Witness {
	return &Witness{
		pool: pool, ledger: w, taskOf: taskOf, claim: load("claim"), ack: load("ack"), tokens: map[string]string{},
	}
}

// Token returns the token with which a task was last claimed through this witness, "" if it was not.
func (w *Witness) Token(task string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens[task]
}

// Conn implements delayed.Source.
func (w *Witness) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	c, err := w.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c, w}, nil
}

// Slot implements delayed.Source for a single server.
func (w *Witness) Slot(string) int { return 0 }

// Close implements delayed.Source.
func (w *Witness) Close() error { return w.pool.Close() }

// note records one call and its answer.
func (w *Witness) note(cmd string, args []any, reply any, err error) {
	if cmd != "EVALSHA" && cmd != "EVAL" {
		return
	}
	name, _ := args[0].(string)
	answer, ok := err.(redis.Error) //nolint:errorlint // as redigo returns it
	if ok && strings.HasPrefix(string(answer), "NOSCRIPT") {
		return
	}
	keys, argv := split(args)
	switch name {
	case w.claim.sha, w.claim.text:
		w.noteClaim(keys, argv, reply, err)
	case w.ack.sha, w.ack.text:
		if len(keys) > 0 {
			w.noteAcks(keys[0], argv, reply, err)
		}
	}
}

// noteClaim reads a call of claim, whose first argument after the keys is the batch number. Its reply holds the status,
// another number, the answer to the acks, with status 2 the version of the control hash, and the messages.
func (w *Witness) noteClaim(keys, argv []any, reply any, err error) {
	if len(keys) < 4 || len(argv) == 0 {
		return
	}
	values, err := redis.Values(reply, err)
	if err == nil && len(values) < 3 {
		err = fmt.Errorf("%d values from claim", len(values))
	}
	if err != nil {
		w.noteAcks(keys[3], argv, nil, err)
		return
	}
	w.noteAcks(keys[3], argv, values[2], nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	messages := values[3:]
	if status, _ := values[0].(int64); status == 2 && len(messages) > 0 {
		messages = messages[1:]
	}
	for i, v := range messages {
		if message, ok := v.([]byte); ok {
			w.tokens[w.taskOf(message)] = fmt.Sprintf("%v-%d", argv[0], i+1)
		}
	}
}

// noteAcks reads the tokens of a call of claim or ack, which are its only strings of that form after the keys, and what
// Redis answers about them: a number if all claims existed, else 1 or 0 for each. processing is the key that ends in
// the worker's id.
func (w *Witness) noteAcks(processing any, argv []any, reply any, err error) {
	_, worker, _ := strings.Cut(fmt.Sprint(processing), "_processing:")
	var tokens []string
	for _, arg := range argv {
		if token, ok := arg.(string); ok && isToken(token) {
			tokens = append(tokens, token)
		}
	}
	_, all := reply.(int64)
	var answers []int
	if !all {
		answers, err = redis.Ints(reply, err)
		if err == nil && len(answers) != len(tokens) {
			err = fmt.Errorf("%d tokens, %d answers", len(tokens), len(answers))
		}
	}
	for i, token := range tokens {
		e := ledger.Event{Kind: ledger.Refused, Worker: worker, Token: token}
		switch {
		case err != nil:
			e.Kind, e.Detail = ledger.Unclear, err.Error()
		case all || answers[i] == 1:
			e.Kind = ledger.Acked
		}
		w.ledger.Write(e)
	}
}

// split separates the keys of EVALSHA from what follows.
func split(args []any) (keys, argv []any) {
	if len(args) < 2 {
		return nil, nil
	}
	n, ok := args[1].(int)
	if !ok || n > len(args)-2 {
		return nil, nil
	}
	return args[2 : 2+n], args[2+n:]
}

// isToken reports whether s has the form <batch>-<i>.
func isToken(s string) bool {
	batch, i, ok := strings.Cut(s, "-")
	return ok && isNumber(batch) && isNumber(i)
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// conn passes every call on and notes it.
type conn struct {
	redis.Conn
	witness *Witness
}

var (
	_ redis.ConnWithTimeout = (*conn)(nil)
	_ redis.ConnWithContext = (*conn)(nil)
)

// Do implements redis.Conn.
func (c *conn) Do(cmd string, args ...any) (any, error) {
	reply, err := c.Conn.Do(cmd, args...)
	c.witness.note(cmd, args, reply, err)
	return reply, err
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *conn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	reply, err := redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
	c.witness.note(cmd, args, reply, err)
	return reply, err
}

// DoContext implements redis.ConnWithContext.
func (c *conn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	reply, err := redis.DoContext(c.Conn, ctx, cmd, args...)
	c.witness.note(cmd, args, reply, err)
	return reply, err
}

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

// ReceiveContext implements redis.ConnWithContext.
func (c *conn) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(c.Conn, ctx)
}
