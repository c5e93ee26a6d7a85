package faultnet

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Dialer makes TCP connections that break by its plan. Its methods fit redigo's DialContextFunc and DialNetDial
// and are safe for concurrent use. The zero value breaks nothing.
type Dialer struct {
	Delay time.Duration // of DelayRequest and DelayReply

	mu       sync.Mutex // protects plan, and is held while it decides
	plan     Plan
	counters counters
}

// NewDialer returns a dialer with a plan; delay is that of its delays.
func NewDialer(plan Plan, delay time.Duration) *Dialer { return &Dialer{plan: plan, Delay: delay} }

// SetPlan replaces the plan, for open connections as well. nil breaks nothing.
func (d *Dialer) SetPlan(plan Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plan = plan
}

// Counts returns what has happened so far on all connections.
func (d *Dialer) Counts() Counts { return d.counters.counts() }

// Dial connects to addr.
func (d *Dialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, addr)
}

// DialContext connects to addr. Connecting itself never meets a fault.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.counters.connections.Add(1)
	return &conn{Conn: c, dialer: d, closed: make(chan struct{})}, nil
}

func (d *Dialer) decide(request []byte) Fault {
	d.counters.requests.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.plan == nil {
		return None
	}
	return d.plan(request)
}

// conn is a connection that breaks. As with redigo's connections, one goroutine writes and reads; others may close it
// and set deadlines.
type conn struct {
	net.Conn
	dialer *Dialer

	mu            sync.Mutex // protects the following fields
	asked         bool       // a request has been begun and nothing of its reply read
	fault         Fault      // of the reply to come
	readDeadline  time.Time
	writeDeadline time.Time

	closeOnce sync.Once
	closed    chan struct{}
}

// Write sends a request or a further part of it.
func (c *conn) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	begins := !c.asked
	c.asked = true
	deadline := c.writeDeadline
	c.mu.Unlock()
	if begins {
		switch fault := c.dialer.decide(b); fault {
		case DropRequest:
			c.dialer.counters.byFault[fault].Add(1)
			c.Close()
			return 0, reset("write")
		case DelayRequest:
			c.dialer.counters.byFault[fault].Add(1)
			if err := c.wait(deadline); err != nil {
				return 0, err
			}
		default:
			c.mu.Lock()
			c.fault = fault
			c.mu.Unlock()
		}
	}
	return c.Conn.Write(b)
}

// Read returns a reply or a part of it. A reply is dropped or delayed when it is here, so the server has certainly done
// its work.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	c.mu.Lock()
	fault, deadline := c.fault, c.readDeadline
	c.asked, c.fault = false, None
	c.mu.Unlock()
	switch fault {
	case DropReply:
		c.dialer.counters.byFault[fault].Add(1)
		c.Close()
		return 0, reset("read")
	case DelayReply:
		c.dialer.counters.byFault[fault].Add(1)
		if err := c.wait(deadline); err != nil {
			return 0, err
		}
	default: // met with the request
	}
	return n, err
}

// wait waits for the dialer's delay, or fails at the deadline or when the connection is closed.
func (c *conn) wait(deadline time.Time) error {
	delay, late := c.dialer.Delay, false
	if !deadline.IsZero() {
		if left := time.Until(deadline); left < delay {
			delay, late = left, true
		}
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-timer.C:
		if late {
			return os.ErrDeadlineExceeded
		}
		return nil
	}
}

// Close closes the connection.
func (c *conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.readDeadline, c.writeDeadline = t, t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.readDeadline = t
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.writeDeadline = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

// reset is the error of a connection that the other side has reset.
func reset(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, syscall.ECONNRESET)}
}
