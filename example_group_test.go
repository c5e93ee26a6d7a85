package delayed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// Index takes any number of ids, so that many calls can become one.
func Index(tenant string, ids ...int) {
	fmt.Println("index", tenant, ids)
	called <- struct{}{}
}

// Calls that follow one another within the grace run as one, as soon as there are no more or there are enough of them.
func ExampleGroup() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-group", rdb).With(
		delayed.Group("search"), delayed.Gather(delayed.GatherPolicy{Grace: time.Minute, MaxSize: 3}),
	)
	_, _ = q.Delay(Index, "shop", 7, 8)
	_, _ = q.Delay(Index, "shop", 9)
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		panic(err)
	}
	groups, _ := ins.Groups(context.Background(), "example-group")
	for _, g := range groups {
		fmt.Println(g.Size, "calls wait in", g.Key)
	}
	_, _ = q.Delay(Index, "shop", 10) // the third
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-group"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Index); err != nil {
		panic(err)
	}
	runOne(w)
	// Output:
	// 2 calls wait in search
	// index shop [7 8 9 10]
}
