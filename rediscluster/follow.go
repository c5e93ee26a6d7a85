package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
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

// redirectionOf parses an error of the node at addr. The zero value means that the slot was not the reason.
func redirectionOf(err error, addr string) redirection {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return redirection{}
	}
	if redisc.IsTryAgain(answer) {
		return redirection{kind: "TRYAGAIN"}
	}
	if to := redisc.ParseRedir(answer); to != nil {
		return redirection{to.Type, complete(to.Addr, addr)}
	}
	return redirection{}
}

// redirect returns the answer to a command. If the node refused it because of its slot, redirect sends it to the node
// that has the slot. When the slot has moved for good, so does the connection, unless replies are still to come from
// the old node.
func (c *conn) redirect(w wait, cmd command, reply any, err error) (any, error) {
	if err == nil {
		c.track(cmd.name, true)
		return reply, nil
	}
	c.failed(c.node, err)
	if c.multi {
		c.track(cmd.name, false)
		return reply, err
	}
	reply, owner, err := c.follow(w, cmd, reply, err)
	answer, ok := err.(redis.Error) //nolint:errorlint // bare means that nobody knows of a cluster
	if ok && aboutSlots(answer) {
		err = fmt.Errorf("the cluster answers: %w", answer)
	}
	switch {
	case owner == c.node:
	case len(c.sent) > 0:
		owner.Close()
	default:
		c.node.Close()
		c.node = owner
	}
	return reply, err
}

// aboutSlots reports whether an answer is one that only nodes of a cluster give.
func aboutSlots(answer redis.Error) bool {
	kind, _, _ := strings.Cut(string(answer), " ")
	return slices.Contains([]string{"MOVED", "ASK", "TRYAGAIN", "CROSSSLOT", "CLUSTERDOWN"}, kind)
}

// track reports whether the connection is within a transaction.
func (c *conn) track(name string, ok bool) {
	switch strings.ToUpper(name) {
	case "MULTI":
		c.multi = ok
	case "EXEC", "DISCARD":
		c.multi = false
	}
}

// follow sends a command that was refused with err to the node it belongs to. It also returns the node that owns the
// slot as far as is known then; the caller closes it.
func (c *conn) follow(w wait, cmd command, reply any, err error) (any, *node, error) {
	owner, refused := c.node, c.node
	deadline := time.Now().Add(redirectTimeout)
	pause := firstPause
	for try := 1; ; try++ {
		to := redirectionOf(err, refused.addr)
		if to.kind == "" || time.Now().After(deadline) {
			return reply, owner, err
		}
		if to.kind == "TRYAGAIN" || try > hurriedTries {
			select {
			case <-time.After(pause):
			case <-w.context().Done():
				return nil, owner, fmt.Errorf("%w; %w", err, context.Cause(w.context()))
			}
			pause = min(2*pause, longestPause)
		}
		next := owner
		elsewhere := to.addr != "" && to.addr != owner.addr
		// If other replies are still to come on the connection, they would be taken for the answer to this command.
		busy := owner == c.node && len(c.sent) > 0
		if elsewhere || busy {
			addr := owner.addr
			if elsewhere {
				addr = to.addr
			}
			var derr error
			if next, derr = c.src.dial(w.context(), addr); derr != nil {
				c.src.layout.refreshSoon()
				// The first error says that nothing was carried out, so wrap both.
				return nil, owner, fmt.Errorf("%w; %w", err, derr)
			}
			if !elsewhere {
				owner = next
			}
		}
		if to.kind == "ASK" {
			reply, err = c.asking(w, next, cmd)
		} else {
			reply, err = c.doOn(w, next, cmd)
		}
		if err != nil {
			c.failed(next, err)
		} else if len(c.sent) > 0 && strings.EqualFold(c.sent[0].name, "WAIT") {
			c.waited = &answer{}
			c.waited.reply, c.waited.err = c.doOn(w, next, c.sent[0])
		}
		refused = next
		switch {
		case next == owner:
		case to.kind == "MOVED":
			if owner != c.node {
				owner.Close()
			}
			owner = next
		default:
			next.Close()
		}
	}
}

// asking sends a command to the node that takes over the slot.
func (c *conn) asking(w wait, n *node, cmd command) (any, error) {
	if err := n.Send("ASKING"); err != nil {
		return nil, err
	}
	return c.doOn(w, n, cmd)
}

// failed handles an error of a node.
func (c *conn) failed(n *node, err error) {
	var answer redis.Error
	var network net.Error
	switch {
	case errors.As(err, &answer):
		if to := redirectionOf(err, n.addr); to.kind == "MOVED" {
			c.src.layout.moved(c.slot, to.addr)
		} else if strings.HasPrefix(string(answer), "CLUSTERDOWN") {
			c.src.layout.refreshSoon()
		}
	case errors.Is(err, context.Canceled): // that was us
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		c.src.layout.doubt(n.addr)
		c.src.layout.refreshSoon()
	default:
		c.src.suspect(n)
	}
}
