package delayed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

func appendPacked(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return wire.AppendNil(b)
	case bool:
		return wire.AppendBool(b, v)
	case int:
		return wire.AppendInt(b, int64(v))
	case uint64:
		return wire.AppendUint(b, v)
	case float64:
		return wire.AppendFloat64(b, v)
	case string:
		return wire.AppendString(b, v)
	case []byte:
		return wire.AppendBin(b, v)
	case time.Time:
		return wire.AppendTime(b, v)
	case wireList:
		b = wire.AppendArrayHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(b, x)
		}
		return b
	case wireDict:
		b = wire.AppendMapHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(appendPacked(b, x.K), x.V)
		}
		return b
	default:
		panic(fmt.Sprintf("pack cannot write a %T", v))
	}
}

func fnCtxTwo(context.Context, int64, string) error { return nil }

func fnTwo(int64, string) {}

func fnNone() {}

// packed writes a value without the codecs that are to be tested with it.
func packed(v any) []byte { return appendPacked(nil, v) }

const testPath = "github.com/godelayed/delayed_test."

type wireDict []wirePair // a map on the wire

type wireList []any // an array on the wire

type wirePair struct{ K, V any }
