package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
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
	// AnnounceEvery is how often a producer announces a queue, with a call that enqueues, so that it is known again
	// after Redis has lost it.
	AnnounceEvery = time.Minute
	// announcePause is how long a producer waits after Redis has refused that, which a full Redis does.
	announcePause = 5 * time.Second
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
	left := AnnounceEvery - time.Since(was.at)
	r.mu.Unlock()
	if left > 0 && (was.legacy || !legacy) {
		return left
	}
	err := r.write(ctx, r.src, name, legacy)
	if err != nil {
		if answer.Is(err) && !answer.Forbidden(err) {
			return announcePause
		}
		// Each try may hold up a call that enqueues, and Redis logs what its ACL forbids.
		return AnnounceEvery
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queues[id] = announcement{was.legacy || legacy, time.Now()}
	return AnnounceEvery
}

func (r *Registry) write(ctx context.Context, src Source, name string, legacy bool) error {
	_, err := evalOn(ctx, src, "announce", []string{r.key}, name, flag(legacy), maxRegistered)
	return err
}

// Uphold asks Redis whether it knows the queues, and makes those known that it does not. queues maps names to whether
// legacy workers share the queue. The connection is one of src, which need not be the registry's.
func (r *Registry) Uphold(ctx context.Context, src Source, queues map[string]bool) error {
	names := slices.Sorted(maps.Keys(queues))
	known, err := redis.Strings(doOn(ctx, src, r.key, "HMGET", argsOf(names, r.key)...))
	if err != nil {
		return err
	}
	if len(known) != len(names) {
		return fmt.Errorf("%w: HMGET", ErrReply)
	}
	for i, name := range names {
		if known[i] == "" || known[i] == "0" && queues[name] {
			err = cmp.Or(r.write(ctx, src, name, queues[name]), err)
		}
	}
	return err
}

// Names returns the queues that are known, and of each whether legacy workers share it.
func (r *Registry) Names(ctx context.Context) (map[string]bool, error) {
	all, err := redis.StringMap(doOn(ctx, r.src, r.key, "HGETALL", r.key))
	if err != nil {
		return nil, err
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
	_, err := doOn(ctx, r.src, r.key, "HDEL", r.key, name)
	r.mu.Lock()
	delete(r.queues, [2]string{r.key, name})
	r.mu.Unlock()
	return err
}

// maxAudit bounds the entries of an audit list.
const maxAudit = 10_000

// Note adds an entry to the audit list, the latest first.
func (r *Registry) Note(ctx context.Context, entry []byte) error {
	_, err := evalOn(ctx, r.src, "audit", []string{r.prefix + auditName}, entry, maxAudit)
	return err
}

// Noted returns entries of the audit list, the latest first, after skipping some.
func (r *Registry) Noted(ctx context.Context, skip, n int) ([][]byte, error) {
	key := r.prefix + auditName
	return redis.ByteSlices(doOn(ctx, r.src, key, "LRANGE", key, skip, skip+n-1))
}
