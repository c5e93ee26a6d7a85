package engine

import (
	"bytes"
	"fmt"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

func bigMessage(i int) redisstore.Envelope {
	msg := wire.Message{
		Kind: wire.GoExtended, Path: "a.b",
		Payload: wire.AppendBin(nil, bytes.Repeat([]byte{'x'}, 1<<20-200)), Meta: wire.Meta{ID: fmt.Sprint(i)},
	}
	return redisstore.Envelope{ID: msg.Meta.ID, Message: msg.Append(nil)}
}

// largest is how many messages of a megabyte one script may move.
const largest = redisstore.MaxCallBytes>>20 + 1
