package redisstore

import (
	"runtime"
	"sync"
	"weak"
)

// Shared holds values by key for as long as somebody uses them. The zero value is empty. It is safe for concurrent use.
type Shared[K comparable, V any] struct {
	Mu    sync.Mutex
	ByKey map[K]weak.Pointer[V]
}

// Get returns the value of a key, which is made if there is none.
func (s *Shared[K, V]) Get(key K, made func() *V) *V {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if v := s.ByKey[key].Value(); v != nil {
		return v
	}
	if s.ByKey == nil {
		s.ByKey = map[K]weak.Pointer[V]{}
	}
	v := made()
	s.ByKey[key] = weak.Make(v)
	runtime.AddCleanup(v, s.forget, key)
	return v
}

// forget drops a value that nobody uses any more, unless another has taken its place.
func (s *Shared[K, V]) forget(key K) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.ByKey[key].Value() == nil {
		delete(s.ByKey, key)
	}
}
