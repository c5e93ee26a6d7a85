package redisstore

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func bigMessage(i int) Envelope {
	msg := wire.Message{
		Kind: wire.GoExtended, Path: "a.b",
		Payload: wire.AppendBin(nil, bytes.Repeat([]byte{'x'}, 1<<20-200)), Meta: wire.Meta{ID: fmt.Sprint(i)},
	}
	return Envelope{ID: msg.Meta.ID, Message: msg.Append(nil)}
}

// largest is how many messages of a megabyte one script may move.
const largest = MaxCallBytes>>20 + 1

// sizedStore returns a store on a server of its own, so that a test can count commands.
func sizedStore(t *testing.T) (*redistest.Bench, *Store) {
	t.Helper()
	b := redistest.NewBench(t, redistest.Start(t))
	return b, NewStore(dialled(t, b.Server.URL()), "", b.Name)
}

func TestClaimTakesNoMoreThanItsBytes(t *testing.T) {
	t.Parallel()
	b, s := sizedStore(t)
	for i := range 100 {
		if err := s.Enqueue(t.Context(), []Envelope{bigMessage(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Register(t.Context(), "w", time.Minute, ""); err != nil {
		t.Fatal(err)
	}
	before := b.Server.CommandStats(t)
	got, err := s.Claim(t.Context(), ClaimCall{Worker: "w", Batch: 1, Most: 1000})
	if err != nil {
		t.Fatal(err)
	}
	m, left := got.Messages, got.Left
	if len(m) > largest || left != 100-len(m) {
		t.Errorf("claimed %d messages of a megabyte, %d are left", len(m), left)
	}
	if n := b.Server.CommandStats(t).Since(before)["lpush"]; n > 16 {
		t.Errorf("%d messages were taken and put back", n)
	}
}
