package fakeredis

import (
	"testing"

	"github.com/gomodule/redigo/redis"
)

func TestServer(t *testing.T) {
	s, err := Start(func(args []string) string {
		switch args[0] {
		case "GET":
			return Array(Bulk(args[1]), Null)
		case "QUIT":
			return ""
		}
		return "-ERR no " + args[len(args)-1] + "\r\n"
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dial := func() redis.Conn {
		t.Helper()
		c, err := redis.Dial("tcp", s.Addr(), redis.DialClientName("name"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := dial()
	defer c.Close()
	if got, err := redis.ByteSlices(c.Do("GET", "a\r\nb")); err != nil || len(got) != 2 || string(got[0]) != "a\r\nb" ||
		got[1] != nil {
		t.Errorf("GET: %q, %v", got, err)
	}
	if _, err := c.Do("SET", "a\r\nb"); err == nil || err.Error() != "ERR no a  b" {
		t.Errorf("SET: %v", err)
	}
	if _, err := c.Do("QUIT"); err == nil {
		t.Error("QUIT: expected that the connection ends")
	}
	if got, want := s.Names(), "GET SET QUIT"; got != want {
		t.Errorf("Names: expected %q, found %q", want, got)
	}
	c2 := dial()
	defer c2.Close()
	s.HangUp()
	if _, err := c2.Do("GET", "a"); err == nil {
		t.Error("GET after HangUp: expected an error")
	}
	c3 := dial()
	defer c3.Close()
	s.Close()
	if _, err := c3.Do("GET", "a"); err == nil {
		t.Error("GET after Close: expected an error")
	}
	if _, err := redis.Dial("tcp", s.Addr()); err == nil {
		t.Error("Dial after Close: expected an error")
	}
}
