// Command reportctl makes reports by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/reports/data"
	"example.com/app/blind/apps/reports/plan"
	"example.com/app/blind/apps/reports/schedule"
)

var (
	tenant = flag.String("tenant", "", "whose report")
	to     = flag.String("to", "", "who gets it")
	days   = flag.Int("days", 7, "of so many days")
	pdf    = flag.Bool("pdf", false, "as PDF")
	wait   = flag.Duration("wait", time.Minute, "for so long")
	repair = flag.Bool("repair", false, "deliver again what could not be delivered")
	forget = flag.Bool("forget", false, "forget the tenant, every day for a month")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "reportctl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	planner := plan.New(rdb, *wait)
	who := data.Tenant(*tenant)
	now := time.Now().Truncate(24 * time.Hour)
	switch {
	case *repair:
		n, err := planner.Repair(ctx, *to)
		fmt.Println("repaired", n)
		return err
	case *forget:
		return schedule.Forget(ctx, delayed.NewQueue(plan.Queue, rdb), now.AddDate(0, 1, 0), who)
	}
	if late, err := planner.Latency(ctx); err == nil && late > *wait/2 {
		return errors.New("the workers are busy: try again later")
	}
	if _, err := planner.Forecast(ctx, who, *days, []float64{1, 2, 3}); err != nil {
		return err
	}
	return planner.Report(ctx, who, data.Range{From: now.AddDate(0, 0, -*days), To: now}, *to, *pdf)
}
