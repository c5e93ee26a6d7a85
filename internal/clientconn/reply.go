package clientconn

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// plain returns arguments as strings and byte slices, in the form that redigo gives them.
func plain(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		if a, ok := arg.(redis.Argument); ok {
			arg = a.RedisArg()
		}
		switch a := arg.(type) {
		case string, []byte:
			out[i] = a
		case int:
			out[i] = strconv.Itoa(a)
		case int64:
			out[i] = strconv.FormatInt(a, 10)
		case float64:
			out[i] = strconv.FormatFloat(a, 'g', -1, 64)
		case bool:
			if out[i] = "0"; a {
				out[i] = "1"
			}
		case nil:
			out[i] = ""
		default:
			out[i] = fmt.Sprint(a)
		}
	}
	return out
}

// Double is a number of RESP3 in the text of Redis. RESP2 has such text as bulk strings.
type Double []byte

// Array returns the reply of RESP2 for a list of RESP3. For members with scores, RESP3 has a list of pairs, RESP2 one
// flat list.
func Array(list []any) []any {
	flat := make([]any, 0, 2*len(list))
	for _, e := range list {
		pair, ok := e.([]any)
		if !ok || len(pair) != 2 {
			return list
		}
		score, ok := pair[1].(Double)
		if !ok {
			return list
		}
		flat = append(flat, pair[0], score)
	}
	return flat
}

// Settle turns all Doubles of a reply into bulk strings.
func Settle(reply any) any {
	switch r := reply.(type) {
	case Double:
		return []byte(r)
	case []any:
		for i := range r {
			r[i] = Settle(r[i])
		}
	}
	return reply
}

// errReply reports that the bytes of a reply end too early or have an unknown type.
var errReply = errors.New("clientconn: malformed reply")

// Parse parses the bytes of one reply, of RESP2 or RESP3, to what redigo makes of the reply of RESP2. Strings share
// memory with raw.
func Parse(raw []byte) (any, error) {
	p := parser{rest: raw}
	reply, err := p.reply()
	if err != nil {
		return nil, err
	}
	if len(p.rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes too many", errReply, len(p.rest))
	}
	if p.doubles {
		reply = Settle(reply)
	}
	return reply, nil
}

type parser struct {
	rest    []byte
	doubles bool
}

func (p *parser) line() ([]byte, error) {
	end := bytes.IndexByte(p.rest, '\n')
	if end < 2 || p.rest[end-1] != '\r' {
		return nil, fmt.Errorf("%w: no line", errReply)
	}
	line := p.rest[: end-1 : end-1]
	p.rest = p.rest[end+1:]
	return line, nil
}

func (p *parser) reply() (any, error) {
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+':
		return string(text), nil
	case '-':
		return redis.Error(text), nil
	case ':':
		return number(text)
	case '_':
		return nil, nil
	case ',':
		p.doubles = true
		return Double(text), nil
	case '(':
		return text, nil
	case '#':
		if len(text) > 0 && text[0] == 't' {
			return int64(1), nil
		}
		return int64(0), nil
	}
	n, err := number(text)
	if err != nil || n < 0 {
		return nil, err
	}
	switch kind {
	case '$', '!', '=':
		return p.bulk(kind, int(n))
	case '*', '~', '>':
		return p.list(int(n))
	case '%':
		return p.list(2 * int(n))
	case '|': // attributes, which precede the reply
		if _, err := p.list(2 * int(n)); err != nil {
			return nil, err
		}
		return p.reply()
	}
	return nil, fmt.Errorf("%w: type %q", errReply, kind)
}

func (p *parser) bulk(kind byte, n int) (any, error) {
	if n > len(p.rest)-2 {
		return nil, fmt.Errorf("%w: %d bytes, expected %d", errReply, len(p.rest), n+2)
	}
	text := p.rest[:n:n]
	p.rest = p.rest[n+2:]
	switch {
	case kind == '!':
		return redis.Error(text), nil
	case kind == '=' && n >= 4:
		return text[4:], nil // behind its format, such as "txt:"
	}
	return text, nil
}

func (p *parser) list(n int) (any, error) {
	list := make([]any, 0, min(n, len(p.rest)))
	for range n {
		e, err := p.reply()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if p.doubles {
		return Array(list), nil
	}
	return list, nil
}

func number(text []byte) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errReply, err)
	}
	return n, nil
}
