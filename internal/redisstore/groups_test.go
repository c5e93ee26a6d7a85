package redisstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// TestAggregatingReadsGroupsToTheEnd looks for calls after the first page of their group. A page ends because it has as
// many calls as a page may have, or because more would be too many bytes.
func TestAggregatingReadsGroupsToTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		calls, size int
	}{
		{"many small calls", 2*groupPage + 1, 1},
		{"few large calls", 10, wire.Default.Bytes * 9 / 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := redistest.NewBench(t, redistest.Shared(t))
			s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
			how := wire.Gather{Grace: 60_000, MaxSize: group.MaxGroupSize}
			payload := wire.AppendArrayHeader(nil, 1)
			payload = wire.AppendBin(payload, bytes.Repeat([]byte{'x'}, c.size))
			for _, key := range []string{"one", "two"} {
				for i := range c.calls {
					msg := wire.Message{Kind: wire.GoExtended, Path: "a.f", Payload: payload, Meta: wire.Meta{
						ID: fmt.Sprintf("%s-%d", key, i), HasN: true, N: 1,
						Extra: &wire.Extra{Group: key, Gather: &how},
					}}
					m, err := group.NewMember(msg.Append(nil))
					b.Must(err)
					_, err = s.Gather(bg, []group.Member{m})
					b.Must(err)
				}
			}
			for _, key := range []string{"one", "two"} {
				for _, i := range []int{0, c.calls / 2, c.calls - 1} {
					id := fmt.Sprintf("%s-%d", key, i)
					message, waits, err := s.Aggregating(bg, id)
					if err != nil || !waits || idOf(message) != id {
						t.Errorf("call %s: found %v, %v", id, waits, err)
					}
				}
			}
			if _, waits, err := s.Aggregating(bg, "one"); err != nil || waits {
				t.Errorf("found a call that was never made: %v, %v", waits, err)
			}
		})
	}
}
