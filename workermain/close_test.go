//go:build unix

package workermain

import (
	"errors"
	"slices"
	"testing"

	"github.com/godelayed/delayed"
)

// TestConnectionsOutliveHandlersThatStillRun: Run closes them at a clean end alone, as else the heartbeats of what
// still runs would end and others would run it as well.
func TestConnectionsOutliveHandlersThatStillRun(t *testing.T) {
	q, flags := newQueue(t)
	release := make(chan struct{})
	stubborn := delayed.Func(func() { <-release }, delayed.Name("test.stubborn"))
	harmless := delayed.Func(func() {}, delayed.Name("test.harmless"))
	start := func(args ...string) (code int, pinged error) {
		var rdb *delayed.Store
		code = run(Config{
			Args: slices.Concat(flags, args), Functions: []any{stubborn, harmless},
			Dial: func(url string) (_ *delayed.Store, err error) {
				rdb, err = delayed.Dial(url)
				return rdb, err
			},
		}, func(string) (string, bool) { return "", false }, func() []string { return nil })
		t.Cleanup(func() { rdb.Close() })
		return code, rdb.Ping(t.Context())
	}
	delay(t, q, harmless)
	if code, err := start("-once"); code != exitClean || !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("at a clean end: code %d, %v, expected ErrClosed", code, err)
	}
	delay(t, q, stubborn)
	code, err := start("-timeout", "10ms", "-stuck-after", "10ms", "-max-stuck", "-1")
	if code != exitStuck || err != nil {
		t.Errorf("while a handler runs: code %d, %v", code, err)
	}
	close(release)
}
