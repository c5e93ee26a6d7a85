package schedule

import (
	"bytes"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// decodeStored checks and decodes one value.
func decodeStored(raw []byte) (any, error) {
	if err := wire.Check(raw, recordLimits); err != nil {
		return nil, err
	}
	value, _, err := wire.DecodeAny(raw)
	return value, err
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// fields reads the values of a map and keeps the first error.
type fields struct {
	values map[string]any
	err    error
}

func (f *fields) wrong(key, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("%q: expected %s, found %v", key, want, f.values[key])
	}
}

func (f *fields) text(key string) string {
	s, ok := f.values[key].(string)
	if !ok && f.values[key] != nil {
		f.wrong(key, "a string")
	}
	return s
}

func (f *fields) bin(key string) []byte {
	b, ok := f.values[key].([]byte)
	if !ok && f.values[key] != nil {
		f.wrong(key, "binary")
	}
	return bytes.Clone(b)
}

func (f *fields) flag(key string) bool {
	b, ok := f.values[key].(bool)
	if !ok && f.values[key] != nil {
		f.wrong(key, "a boolean")
	}
	return b
}

func (f *fields) number(key string, lowest, highest int64) int64 {
	n, ok := f.values[key].(int64)
	if f.values[key] != nil && (!ok || n < lowest || n > highest) {
		f.wrong(key, fmt.Sprintf("a number from %d to %d", lowest, highest))
	}
	return n
}

func (f *fields) moment(key string) time.Time {
	if f.values[key] == nil {
		return time.Time{}
	}
	return time.UnixMilli(f.number(key, 0, 1<<53)).UTC()
}
