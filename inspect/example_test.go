package inspect_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// exampleTB lets the example, which has no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// redisURL stands for the address of a Redis server.
func redisURL() string { return redistest.Shared(exampleTB{}).URL() }

// Welcome sends a mail.
func Welcome(id int, language string) {}

// Look into all queues, put aside the German mails, and send them after all.
func Example() {
	handle, err := delayed.Dial(redisURL())
	if err != nil {
		panic(err)
	}
	defer handle.Close()
	rdb, ctx := handle.WithPrefix("example:"), context.Background()
	q := delayed.NewQueue("mail", rdb)
	_, err = q.DelayMany(ctx, delayed.Call(Welcome, 1, "en"), delayed.Call(Welcome, 2, "de"))
	if err != nil {
		panic(err)
	}

	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		panic(err)
	}
	german := inspect.Query{State: state.Pending, Filter: inspect.Filter{Function: "Welcome", Text: `"de"`}}
	report, err := ins.DoAll(ctx, "mail", inspect.Archive(), german, nil)
	fmt.Println(report.Done, "archived:", err)
	for t, err := range ins.All(ctx, "mail", inspect.Query{State: state.Archived}) {
		fmt.Println(t.Call, t.Reason, err)
	}
	queues, err := ins.Queues(ctx)
	if err != nil {
		panic(err)
	}
	for _, q := range queues {
		fmt.Println(q.Name, "has", q.Pending, "pending and", q.Archived, "archived tasks")
	}
	report, err = ins.DoAll(ctx, "mail", inspect.RunNow(), inspect.Query{State: state.Archived}, nil)
	fmt.Println(report.Done, "pending again:", err)
	// Output:
	// 1 archived: <nil>
	// inspect_test.Welcome(2, "de") by hand <nil>
	// mail has 1 pending and 1 archived tasks
	// 1 pending again: <nil>
}
