//go:build unix

package staleconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// canPeek reports whether closedByServer can look at a connection.
func canPeek(wire net.Conn) bool {
	_, ok := socket(wire)
	return ok
}

// socket returns what is below a connection that wraps another one.
func socket(wire net.Conn) (syscall.Conn, bool) {
	if wraps, ok := wire.(interface{ NetConn() net.Conn }); ok {
		wire = wraps.NetConn()
	}
	conn, ok := wire.(syscall.Conn)
	return conn, ok
}

// closedByServer returns an error if the server has closed an idle connection. It never waits. A server with the
// setting timeout closes what has idled; the next write would show that only when it is unknown whether Redis has
// carried it out.
func closedByServer(wire net.Conn) error {
	conn, ok := socket(wire)
	if !ok {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("delayed: the idle connection: %w", err)
	}
	var n int
	var found error
	// Read would look at the time-out of the last call.
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, found = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	switch {
	case err != nil:
		return fmt.Errorf("delayed: the idle connection: %w", err)
	case errors.Is(found, syscall.EAGAIN), errors.Is(found, syscall.EINTR):
		return nil
	case found == nil && n == 0:
		found = io.EOF
	case found == nil:
		found = errors.New("it has sent what nobody has asked for")
	}
	return fmt.Errorf("delayed: the server has closed the idle connection: %w", found)
}
