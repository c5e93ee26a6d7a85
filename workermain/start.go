package workermain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/redisurl"
)

const (
	// pingLimit bounds one attempt to reach Redis.
	pingLimit = 5 * time.Second
	// firstPause and longestPause bound the time between two attempts.
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// dial makes the handle on Redis. It does not connect.
func dial(how func(string) (*delayed.Store, error), rawURL string) (*delayed.Store, error) {
	if how != nil {
		return how(rawURL)
	}
	if severalHosts(rawURL) {
		return nil, errors.New("delayed: the Redis URL is that of a cluster or of Sentinel, and this program knows " +
			"single servers only: " +
			"build it with workermain.Config.Dial set to rediscluster.Dial or redissentinel.Dial")
	}
	return delayed.Dial(rawURL)
}

// severalHosts reports whether a URL is one of a cluster or of Sentinel.
func severalHosts(rawURL string) bool {
	u, err := redisurl.Parse(rawURL, "6379")
	return err == nil && (len(u.Hosts) > 1 || u.Query.Has("master"))
}

// awaitRedis waits until Redis answers, for as long as the settings allow. It gives up at once when Redis refuses
// lastingly, as after a wrong password.
func (p *program) awaitRedis(ctx context.Context) error {
	end := time.Now().Add(p.settings.wait)
	for next := firstPause; ; next = min(2*next, longestPause) {
		err := p.ping(ctx, max(min(time.Until(end), pingLimit), time.Second))
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case refused(err):
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("delayed: Redis did not answer within %v (see -wait): %w", p.settings.wait, err)
		}
		if next == firstPause {
			p.log.WithError(err).Warn("waiting for Redis")
		}
		timer := time.NewTimer(min(next, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (p *program) ping(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p.rdb.Ping(ctx)
}

// refused reports whether Redis has answered with an error that a wrong URL or password causes, rather than a temporary
// one such as LOADING.
func refused(err error) bool {
	switch answer.Code(err) {
	case "NOAUTH", "WRONGPASS", "NOPERM", "DENIED":
		return true
	case "ERR":
		return !strings.Contains(err.Error(), "ERR max number of clients")
	}
	return false
}
