package api

import (
	"sync"
	"time"
)

// limiter bounds how many requests each user makes, on average. Two seconds' worth may come at once.
type limiter struct {
	rate, most float64

	mu    sync.Mutex
	users map[string]*tokens
}

// tokens are the requests that a user may make at once.
type tokens struct {
	left float64
	at   time.Time
}

// maxBuckets is how many users are distinguished before those who have been quiet are forgotten.
const maxBuckets = 10_000

// newLimiter returns a limiter of so many requests a second; any number if it is not positive.
func newLimiter(rate float64) *limiter {
	return &limiter{rate: rate, most: max(2*rate, 1), users: map[string]*tokens{}}
}

// take notes a request of a user, and returns how long it has to wait; 0: not at all.
func (l *limiter) take(user string, now time.Time) time.Duration {
	if l.rate <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.users[user]
	if t == nil {
		if len(l.users) >= maxBuckets {
			l.forget(now)
		}
		t = &tokens{l.most, now}
		l.users[user] = t
	}
	t.left = min(l.most, t.left+l.rate*max(now.Sub(t.at).Seconds(), 0))
	t.at = now
	if t.left < 1 {
		return time.Duration((1 - t.left) / l.rate * float64(time.Second))
	}
	t.left--
	return 0
}

// forget forgets the users who may make as many requests as if they were new.
func (l *limiter) forget(now time.Time) {
	for name, t := range l.users {
		if t.left+l.rate*now.Sub(t.at).Seconds() >= l.most {
			delete(l.users, name)
		}
	}
}
