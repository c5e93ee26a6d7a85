//go:build !unix

package staleconn

import "net"

// canPeek reports whether closedByServer can look at a connection.
func canPeek(net.Conn) bool { return false }

// closedByServer knows nothing on this system. Watch.Test sends a PING instead.
func closedByServer(net.Conn) error { return nil }
