package redisstore

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// maxRegistered bounds the queues of a registry.
const maxRegistered = 100_000

// Registry knows the queues of all handles with one prefix: a hash in Redis, of names to 1 if legacy workers share the
// queue, else 0. Producers and workers announce the queues that they use; nothing depends on it but those who look for
// queues. Its methods may be called concurrently.
type Registry struct {
	src    Source
	prefix string
	key    string

	*announced
}

// announced are the queues that this process has announced through one connection, by registry and name.
type announced struct {
	mu     sync.Mutex
	queues map[[2]string]announcement
}

type announcement struct {
	legacy bool
	at     time.Time
}

const (
	// AnnounceEvery is how often a process announces a queue, so that it is known again after somebody has deleted it.
	AnnounceEvery = time.Hour
	// announcePause is how long a producer waits until it tries again, or looks again whether it is time. A worker does
	// so with each heartbeat.
	announcePause = time.Minute
)

// NewRegistry returns the registry of handles with a prefix.
func NewRegistry(src Source, prefix string) *Registry {
	return &Registry{src, prefix, prefix + registryName, &announced{queues: map[[2]string]announcement{}}}
}

// WithPrefix returns the registry of handles with another prefix.
func (r *Registry) WithPrefix(prefix string) *Registry {
	return &Registry{r.src, prefix, prefix + registryName, r.announced}
}

// Announce makes a queue known, unless this process has done so within AnnounceEvery. It returns after how long to call
// it again.
func (r *Registry) Announce(ctx context.Context, name string, legacy bool) time.Duration {
	id := [2]string{r.key, name}
	r.mu.Lock()
	was := r.queues[id]
	skip := time.Since(was.at) < AnnounceEvery && (was.legacy || !legacy)
	r.mu.Unlock()
	if skip {
		return announcePause
	}
	_, err := evalOn(ctx, r.src, scriptAnnounce, []string{r.key}, []any{name, flag(legacy), maxRegistered})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || Refused(err) { // a user without access to the key need not try again
		r.queues[id] = announcement{was.legacy || legacy, time.Now()}
		return AnnounceEvery
	}
	return announcePause
}

// Names returns the queues that are known, and of each whether legacy workers share it.
func (r *Registry) Names(ctx context.Context) (map[string]bool, error) {
	conn, err := Connect(ctx, r.src, r.key)
	if err != nil {
		return nil, ConnError(err)
	}
	defer conn.Close()
	all, err := redis.StringMap(do(ctx, conn, CallTimeout, "HGETALL", r.key))
	if err != nil {
		return nil, fmt.Errorf("delayed: the registry of queues: %w", err)
	}
	names := make(map[string]bool, len(all))
	for name, legacy := range all {
		names[name] = legacy == "1"
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return CheckQueueName(name) != nil })
	return names, nil
}

// Remove forgets a queue.
func (r *Registry) Remove(ctx context.Context, name string) error {
	conn, err := Connect(ctx, r.src, r.key)
	if err != nil {
		return ConnError(err)
	}
	defer conn.Close()
	_, err = do(ctx, conn, CallTimeout, "HDEL", r.key, name)
	r.mu.Lock()
	delete(r.queues, [2]string{r.key, name})
	r.mu.Unlock()
	return err
}
