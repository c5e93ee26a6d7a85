// Package store keeps pages.
package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"example.com/app/blind/apps/crawler/page"
)

// ErrMissing says that there is no such page.
var ErrMissing = errors.New("store: no such page")

// Store keeps pages in memory. Workers register its methods.
type Store struct {
	mu    sync.Mutex
	pages map[page.Address]page.Page
}

// New returns an empty store.
func New() *Store { return &Store{pages: map[page.Address]page.Page{}} }

// Save stores a page.
func (s *Store) Save(_ context.Context, p page.Page) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[p.Address] = p
	return nil
}

// Expire deletes pages that are older than that and returns how many.
func (s *Store) Expire(age time.Duration) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.pages)
	for address, p := range s.pages {
		if time.Since(p.Fetched) > age {
			delete(s.pages, address)
		}
	}
	return before - len(s.pages), nil
}

// Rank computes how often pages are linked.
func (s *Store) Rank(ctx context.Context, damping float64, rounds int) (map[string]float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ranks := make(map[string]float64, len(s.pages))
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for address, p := range s.pages {
			for _, link := range p.Links {
				ranks[string(link)] += damping * (1 + ranks[string(address)]) / float64(len(p.Links))
			}
		}
	}
	return ranks, nil
}

// Known returns those addresses that are stored.
func (s *Store) Known(addresses ...page.Address) []page.Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(addresses), func(a page.Address) bool {
		_, ok := s.pages[a]
		return !ok
	})
}
