package redisstore

import (
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestAnnounceAgain announces a queue while Redis cannot be asked, and at once when it can.
func TestAnnounceAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	asked, away := 0, true
	src := redistest.Intercept(dialled(t, server.URL()),
		func(_ string, _ []any, send func() (any, error)) (any, error) {
			if asked++; away {
				return nil, redis.ErrPoolExhausted
			}
			return send()
		})
	r := NewRegistry(src, redistest.Name(t)+":")
	t.Cleanup(func() { server.Do(t, "DEL", r.key) })

	if again := r.Announce(bg, "mail", false); again != AnnounceEvery || asked == 0 {
		t.Errorf("without Redis: asked %d times, again after %v", asked, again)
	}
	away = false
	if again := r.Announce(bg, "mail", false); again != AnnounceEvery {
		t.Errorf("with Redis: again after %v", again)
	}
	if names, err := r.Names(bg); err != nil || len(names) != 1 {
		t.Errorf("known are %v, %v", names, err)
	}
	asked = 0
	if r.Announce(bg, "mail", false); asked != 0 {
		t.Errorf("asked %d times about what Redis knows", asked)
	}
}
