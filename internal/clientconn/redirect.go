package clientconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// redirectTimeout bounds how long a command is tried on one node after the other while its slot moves. After the
	// first few tries there are growing pauses.
	redirectTimeout = 5 * time.Second
	hurriedTries    = 3
	firstPause      = 10 * time.Millisecond
	longestPause    = 200 * time.Millisecond
)

// redirection is the answer of a node that refuses a command because of its slot.
type redirection struct {
	kind string // MOVED: the slot belongs to addr now; ASK: addr already has this key; TRYAGAIN: both nodes have keys
	addr string
}

// redirectionOf parses the error reply of the node at from. The zero value means that the slot was not the reason.
func redirectionOf(answer redis.Error, from string) redirection {
	fields := strings.Fields(string(answer))
	switch {
	case len(fields) == 0:
	case fields[0] == "TRYAGAIN":
		return redirection{kind: "TRYAGAIN"}
	case len(fields) == 3 && (fields[0] == "MOVED" || fields[0] == "ASK"):
		addr := fields[2]
		if host, _, err := net.SplitHostPort(from); err == nil && strings.HasPrefix(addr, ":") {
			addr = net.JoinHostPort(host, addr[1:]) // the node does not know its own name
		}
		return redirection{fields[0], addr}
	}
	return redirection{}
}

// follow sends cmds[0], which was refused with replies[0], to the node it belongs to, and stores the answer there. A
// WAIT right behind goes with it, as it asks about what its own connection has written. If the slot has moved for good
// and nothing else is under way, the connection moves too.
func (c *Conn) follow(w wait, cmds []Command, replies []any) error {
	ctx, limit := w.bounds()
	group := cmds[:1]
	if len(cmds) > 1 && cmds[1].is("WAIT") {
		group = cmds[:2]
	}
	at := c.node // the node that has refused
	deadline, pause := time.Now().Add(redirectTimeout), firstPause
	for try := 1; ; try++ {
		refused, _ := replies[0].(redis.Error)
		to := redirectionOf(refused, at.Addr())
		if to.kind == "" || time.Now().After(deadline) {
			if refused != "" && aboutSlots(refused) {
				replies[0] = fmt.Errorf("the cluster answers: %w", refused)
			}
			return nil
		}
		if to.kind == "TRYAGAIN" || try > hurriedTries {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				replies[0] = fmt.Errorf("%w; %w", refused, context.Cause(ctx))
				return nil
			}
			pause = min(2*pause, longestPause)
		}
		next := at
		if to.addr != "" {
			var err error
			if next, err = c.client.NodeAt(ctx, c.key, to.addr); err != nil {
				// The first error means that nothing was carried out, so keep both.
				replies[0] = fmt.Errorf("%w; %w", refused, err)
				return nil
			}
		}
		if to.kind == "MOVED" {
			c.client.Moved(ctx, c.key, to.addr)
		}
		stays := to.kind != "ASK" && len(cmds) == len(group)
		answers, err := c.doAt(ctx, limit, next, to.kind == "ASK", stays, group)
		switch {
		case errors.Is(err, errNotSent):
			replies[0] = fmt.Errorf("%w; %w", refused, err)
			return nil
		case err != nil:
			return c.fatal(err)
		}
		copy(replies, answers)
		at = next
	}
}

// errNotSent reports that a redirected command was not sent, because its node cannot be reached.
var errNotSent = errors.New("it was not sent on")

// doAt sends commands to a node. If the connection stays there, it becomes that of c.
func (c *Conn) doAt(
	ctx context.Context, limit time.Duration, n Node, asking, stays bool, cmds []Command,
) ([]any, error) {
	take := n.Take
	if cmds[0].blocks() {
		take = n.Wait
	}
	wire, err := take(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if asking {
		cmds = append([]Command{{Name: "ASKING"}}, cmds...)
	}
	answers, err := wire.Do(ctx, limit, cmds)
	if err != nil {
		wire.Discard()
		return nil, err
	}
	if asking {
		answers = answers[1:]
	}
	if stays {
		if c.waiting {
			c.wire.Discard()
		} else {
			c.wire.Release()
		}
		c.node, c.wire, c.waiting = n, wire, cmds[0].blocks()
	} else {
		wire.Release()
	}
	return answers, nil
}

// aboutSlots reports whether an answer is one that only nodes of a cluster give.
func aboutSlots(answer redis.Error) bool {
	kind, _, _ := strings.Cut(string(answer), " ")
	switch kind {
	case "MOVED", "ASK", "TRYAGAIN", "CROSSSLOT", "CLUSTERDOWN":
		return true
	}
	return false
}
