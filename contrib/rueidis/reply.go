package rueidis

import (
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/godelayed/delayed/internal/clientconn"
)

// value returns a reply as redigo has it, except that simple strings are byte slices too, because rueidis does not
// distinguish them from others.
func value(result rueidis.RedisResult) (any, error) {
	if err := result.NonRedisError(); err != nil {
		return nil, err
	}
	if err := result.Error(); err != nil {
		if rueidis.IsRedisNil(err) {
			return nil, nil
		}
		return refusal(err), nil
	}
	message, err := result.ToMessage()
	if err != nil {
		return nil, err
	}
	return clientconn.Settle(plain(&message)), nil
}

func plain(m *rueidis.RedisMessage) any {
	switch {
	case m.IsNil():
		return nil
	case m.IsInt64():
		n, _ := m.ToInt64()
		return n
	case m.IsBool():
		if yes, _ := m.ToBool(); yes {
			return int64(1)
		}
		return int64(0)
	case m.IsArray():
		list, _ := m.ToArray()
		out := make([]any, len(list))
		for i := range list {
			out[i] = plain(&list[i])
		}
		return clientconn.Array(out)
	case m.IsMap():
		entries, _ := m.ToMap()
		out := make([]any, 0, 2*len(entries))
		for key, entry := range entries {
			out = append(out, []byte(key), plain(&entry))
		}
		return out
	}
	if err := m.Error(); err != nil {
		return refusal(err)
	}
	text, _ := m.ToString()
	if m.IsFloat64() {
		return clientconn.Double(text)
	}
	return []byte(text)
}

// refusal returns the error of Redis. rueidis leaves out its first word, if that is ERR. All others are of upper-case
// letters too.
func refusal(err error) redis.Error {
	text := err.Error()
	if kind, _, _ := strings.Cut(text, " "); kind != strings.ToUpper(kind) {
		text = "ERR " + text
	}
	return redis.Error(text)
}
