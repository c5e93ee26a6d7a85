// Package data reads and sums the numbers that reports show.
package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrRange says that a range of days is empty.
var ErrRange = errors.New("data: expected a range whose end lies after its begin")

type (
	// Tenant is the name of a customer.
	Tenant string
	// Metric is what is measured.
	Metric uint8
)

// Metrics.
const (
	Visits Metric = iota + 1
	Sales
	Returns
)

// Range is a range of days.
type Range struct {
	From, To time.Time
}

// Row is a row of numbers.
type Row struct {
	Day    time.Time
	Values map[Metric]float64
	Note   *string
}

// Table is a number of rows. Embedded fields travel too.
type Table struct {
	Range
	Tenant Tenant
	Rows   []Row
}

// Load loads the rows of a tenant.
func Load(_ context.Context, tenant Tenant, days Range) (Table, error) {
	if !days.To.After(days.From) {
		return Table{}, fmt.Errorf("%w: %v to %v", ErrRange, days.From, days.To)
	}
	table := Table{Range: days, Tenant: tenant}
	for day := days.From; day.Before(days.To); day = day.AddDate(0, 0, 1) {
		table.Rows = append(table.Rows, Row{Day: day, Values: map[Metric]float64{Visits: float64(day.YearDay())}})
	}
	return table, nil
}

// Total sums one metric.
func Total(_ context.Context, table Table, metric Metric) (float64, error) {
	var total float64
	for _, row := range table.Rows {
		total += row.Values[metric]
	}
	return total, nil
}

// Top returns the largest values of a map, for any kind of key.
func Top[K cmp.Ordered](values map[K]float64, n int) []K {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b K) int { return cmp.Compare(values[b], values[a]) })
	return keys[:min(n, len(keys))]
}

// Forget forgets the numbers of tenants, and says of how many.
func Forget(tenants ...Tenant) (int, error) { return len(tenants), nil }
