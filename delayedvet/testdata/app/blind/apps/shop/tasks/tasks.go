// Package tasks declares what the site delays and the workers run.
package tasks

import (
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/typed"

	"example.com/app/blind/apps/shop/mailing"
	"example.com/app/blind/apps/shop/orders"
	"example.com/app/blind/apps/shop/stock"
)

// Names of the queues.
const (
	Critical = "shop-critical"
	Default  = "shop"
)

// Functions with defaults.
var (
	Confirm    = typed.Func1(mailing.Confirm, delayed.MaxRetry(10), delayed.Timeout(30*time.Second))
	Newsletter = typed.Func3(mailing.Newsletter, delayed.TTL(24*time.Hour))
	Count      = typed.ResultFunc0(stock.Count, delayed.KeepResult(time.Hour))
	Charge     = delayed.Func((*orders.Cashier).Charge, delayed.Name("shop.charge"), delayed.KeepResult(24*time.Hour))
	Reindex    = delayed.Func(stock.Reindex, delayed.Gather(delayed.GatherPolicy{Grace: 5 * time.Second, MaxSize: 200}))
)

// Register registers everything.
func Register(w *delayed.Worker, cashier *orders.Cashier) error {
	charge := delayed.Func(cashier.Charge, delayed.Name("shop.charge"))
	if err := w.Register(Confirm, Newsletter, Count, Reindex, charge); err != nil {
		return err
	}
	if err := w.Register(mailing.Remind, mailing.Digest, stock.Take, stock.Put); err != nil {
		return err
	}
	return w.RegisterMethods(cashier)
}

// Entries are the periodic tasks of the shop.
func Entries(team []string) []delayed.Entry {
	return []delayed.Entry{
		{
			Name: "digest", Spec: "30 7 * * mon-fri", Zone: "Europe/Berlin",
			Task: delayed.Call(mailing.Digest, team), CatchUp: -1,
		},
		{
			Name: "count", Spec: "@every 6h", Task: Count.Call(), Overlap: delayed.OverlapSkip,
			Options: []delayed.Option{delayed.Timeout(time.Hour), delayed.Retention(48 * time.Hour)},
		},
	}
}
