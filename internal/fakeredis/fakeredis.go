// Package fakeredis is a server that answers Redis commands with whatever a test makes up, for answers that real
// servers give only at the wrong moment. It is for tests only.
package fakeredis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Server is a running fake.
type Server struct {
	listener net.Listener
	answer   func(args []string) string
	wg       sync.WaitGroup

	mu     sync.Mutex // protects the following
	seen   [][]string
	conns  map[net.Conn]bool
	closed bool
}

// Start starts a server on a free port of the loopback interface. answer is called, concurrently if there are several
// connections, with each command and returns the reply in Redis's protocol; "" closes the connection. CLIENT is
// answered with OK and not shown to it.
func Start(answer func(args []string) string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // does not block
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, answer: answer, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	return s, nil
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			c.Close()
		} else {
			s.conns[c] = true
			s.wg.Go(func() { s.serve(c) })
		}
		s.mu.Unlock()
	}
}

func (s *Server) serve(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		reply := "+OK\r\n"
		if args[0] != "CLIENT" {
			s.mu.Lock()
			s.seen = append(s.seen, args)
			s.mu.Unlock()
			reply = s.answer(args)
		}
		if strings.HasPrefix(reply, "-") {
			// As Redis does: an error may quote arguments, and those any byte.
			text := strings.TrimSuffix(reply, "\r\n")
			reply = strings.NewReplacer("\r", " ", "\n", " ").Replace(text) + "\r\n"
		}
		if reply == "" {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

// Close ends the listener and all connections, and waits until answer has returned from all calls. Closing twice is
// harmless.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// HangUp ends the connections that there are; new ones are accepted.
func (s *Server) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// Connections returns how many connections there are.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Addr returns host and port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Port returns the port as text.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr())
	return port
}

// Seen returns the commands that have arrived, with their arguments.
func (s *Server) Seen() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]string(nil), s.seen...)
}

// Names returns the names of the commands that have arrived, with spaces between them.
func (s *Server) Names() string {
	var names []string
	for _, args := range s.Seen() {
		names = append(names, args[0])
	}
	return strings.Join(names, " ")
}

// Bulk returns a bulk string as Redis sends it.
func Bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// Array returns an array of replies.
func Array(replies ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(replies), strings.Join(replies, ""))
}

// Null is the reply that stands for nothing.
const Null = "$-1\r\n"

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readNumber(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readNumber(r, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

func readNumber(r *bufio.Reader, prefix byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != prefix {
		return 0, fmt.Errorf("fakeredis: expected %c, found %q", prefix, line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
