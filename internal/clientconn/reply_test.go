package clientconn

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"testing"

	"github.com/gomodule/redigo/redis"
)

func TestParse(t *testing.T) {
	text := func(s string) any { return []byte(s) }
	for raw, want := range map[string]any{
		"+OK\r\n":                            "OK",
		"-ERR no\r\n":                        redis.Error("ERR no"),
		":-7\r\n":                            int64(-7),
		"$-1\r\n":                            nil,
		"*-1\r\n":                            nil,
		"_\r\n":                              nil,
		"$4\r\na\r\nb\r\n":                   text("a\r\nb"),
		"$0\r\n\r\n":                         text(""),
		"*0\r\n":                             []any{},
		"*3\r\n$1\r\na\r\n$-1\r\n-ERR x\r\n": []any{text("a"), nil, redis.Error("ERR x")},
		",1.5\r\n":                           text("1.5"),
		",inf\r\n":                           text("inf"),
		"#t\r\n":                             int64(1),
		"#f\r\n":                             int64(0),
		"(123456789012345678901\r\n":         text("123456789012345678901"),
		"=7\r\ntxt:abc\r\n":                  text("abc"),
		"!6\r\nERR no\r\n":                   redis.Error("ERR no"),
		"%1\r\n$1\r\na\r\n:1\r\n":            []any{text("a"), int64(1)},
		"~1\r\n$1\r\na\r\n":                  []any{text("a")},
		"|1\r\n+ttl\r\n:1\r\n:2\r\n":         int64(2),
		"*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n":    []any{text("a"), text("1.5")},
		"*2\r\n$1\r\na\r\n,1.5\r\n":          []any{text("a"), text("1.5")},
		"*2\r\n,1\r\n_\r\n":                  []any{text("1"), nil},
		"*1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n": []any{[]any{text("a"), text("b")}},
		"*2\r\n*2\r\n$1\r\na\r\n,1\r\n$1\r\nb\r\n":      []any{[]any{text("a"), text("1")}, text("b")},
		"%1\r\n+z\r\n*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n":   []any{"z", []any{text("a"), text("1.5")}},
		"*2\r\n*2\r\n+a\r\n,1\r\n*2\r\n+b\r\n,-inf\r\n": []any{"a", text("1"), "b", text("-inf")},
	} {
		got, err := Parse([]byte(raw))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v, expected %#v", raw, got, err, want)
		}
		for cut := range len(raw) {
			if got, err := Parse([]byte(raw[:cut])); !errors.Is(err, errReply) {
				t.Errorf("%q: %#v, %v, expected an error", raw[:cut], got, err)
			}
		}
	}
	for _, raw := range []string{
		":x\r\n", "$x\r\n", "@1\r\n", ":1\r\n:2\r\n", "*1000000000\r\n:1\r\n", "$99999999999\r\na\r\n",
	} {
		if got, err := Parse([]byte(raw)); !errors.Is(err, errReply) {
			t.Errorf("%q: %#v, %v, expected an error", raw, got, err)
		}
	}
}

func TestRedirectionOf(t *testing.T) {
	for answer, want := range map[string]redirection{
		"MOVED 1 10.0.0.1:7001":    {"MOVED", "10.0.0.1:7001"},
		"MOVED 1 :7001":            {"MOVED", net.JoinHostPort("10.9.9.9", "7001")},
		"ASK 1 10.0.0.1:7001":      {"ASK", "10.0.0.1:7001"},
		"TRYAGAIN Multiple keys":   {kind: "TRYAGAIN"},
		"ERR MOVED 1 10.0.0.1:700": {},
		"":                         {},
	} {
		if got := redirectionOf(redis.Error(answer), "10.9.9.9:7000"); got != want {
			t.Errorf("%q: %v, expected %v", answer, got, want)
		}
	}
}

// TestPlainArguments compares with what redigo sends.
func TestPlainArguments(t *testing.T) {
	got := plain([]any{"a", []byte("b"), 1, int64(-2), 0.1, 1e30, true, false, nil, argument{}, errors.New("e")})
	const want = "[a b 1 -2 0.1 1e+30 1 0  arg e]"
	if text := fmt.Sprintf("%s", got); text != want {
		t.Errorf("%s, expected %s", text, want)
	}
}

type argument struct{}

func (argument) RedisArg() any { return "arg" }
