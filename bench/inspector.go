package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// inspectorCommand runs the command `inspector`: it measures what it costs to look into a queue that is full while its
// tasks run.
func inspectorCommand(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("inspector", flag.ExitOnError)
	n := flags.Int("n", 1_000_000, "pending tasks; a tenth as many are scheduled, and as many archived")
	rounds := flags.Int("rounds", 50, "how often each view is read")
	_ = flags.Parse(args)
	b, err := makeBed(ctx, delayedPeer, aofEverysec, 0)
	if err != nil {
		return err
	}
	defer b.close()
	defer recoverFailure(&err)
	ins := b.fullQueue(*n, time.Millisecond)
	b.recordSlow(1000)
	took := map[string][]float64{}
	all := slices.Concat(views, actions)
	for range *rounds {
		for _, v := range all {
			start := time.Now()
			check(v.read(ctx, ins))
			took[v.name] = append(took[v.name], time.Since(start).Seconds()*1000)
		}
	}
	lines := [][]string{{"view or action", "median [ms]", "longest [ms]"}}
	for _, v := range all {
		lines = append(lines, []string{v.name, number(quantile(took[v.name], 0.5)), number(quantile(took[v.name], 1))})
	}
	// The time in which the system gave the processor to another program counts too.
	slow := [][]string{{"what took longer than 1 ms in the server", "times", "longest [ms]"}}
	runs := b.slowRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		slow = append(slow, []string{name, count(len(runs[name])), join(", ", runs[name][:min(3, len(runs[name]))])})
	}
	fmt.Printf("%s\n%s", tableOf(lines, 1), tableOf(slow, 1))
	return nil
}

// fullQueue fills a queue with n pending tasks and a tenth as many scheduled and archived ones, beside a worker whose
// tasks take so long, and returns an inspector that ends with the bed.
func (b *bed) fullQueue(n int, task time.Duration) *inspect.Inspector {
	producer := b.driver()
	producer.do(&request{Op: "enqueue", N: n / 5, Producers: manyProducers, Form: "scheduled"})
	// No call archives so many tasks at once: the keys are written as lua/README.md describes them.
	archive := redis.NewScript(2, `
		local ids = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
		for i = 1, #ids do
			redis.call('ZREM', KEYS[1], ids[i])
			redis.call('ZADD', KEYS[2], ARGV[2], ids[i])
		end`)
	later := time.Now().Add(90 * 24 * time.Hour).UnixMilli()
	for left := n / 10; left > 0; left -= 1000 {
		_, err := archive.Do(b.redisConn(), queueName+"_scheduled", queueName+"_archived", min(left, 1000), later)
		check(err)
	}
	b.fill(producer, n, 0)
	b.driver().do(&request{Op: "work", Concurrency: baseConcurrency, Sleep: task})
	rdb, err := delayed.Dial("redis://" + b.addr)
	check(err)
	context.AfterFunc(b.ctx, func() { rdb.Close() })
	ins, err := inspect.New(rdb, inspect.Config{})
	check(err)
	return ins
}

// view is something that people look at, or do.
type view struct {
	name string
	read func(ctx context.Context, ins *inspect.Inspector) error
}

var views = slices.Concat([]view{
	{"overview of all queues", func(ctx context.Context, ins *inspect.Inspector) error {
		_, err := ins.Queues(ctx)
		return err
	}},
	{"workers", reading((*inspect.Inspector).Workers)},
	{"functions", reading((*inspect.Inspector).Functions)},
	{"metrics of the last five minutes, by second", func(ctx context.Context, ins *inspect.Inspector) error {
		_, err := ins.Metrics(ctx, queueName, inspect.Seconds, time.Now().Add(-5*time.Minute), time.Time{})
		return err
	}},
}, pages(state.Pending), pages(state.Active), pages(state.Scheduled), pages(state.Archived))

func reading[T any](read func(*inspect.Inspector, context.Context, ...string) (T, error)) func(
	context.Context, *inspect.Inspector) error {
	return func(ctx context.Context, ins *inspect.Inspector) error {
		_, err := read(ins, ctx)
		return err
	}
}

// pages are the first pages of a list, from its beginning and from its end.
func pages(of state.Task) (both []view) {
	for i, name := range []string{"first", "last"} {
		both = append(both, view{
			fmt.Sprintf("%s 50 %v tasks", name, of), func(ctx context.Context, ins *inspect.Inspector) error {
				_, err := ins.Tasks(ctx, queueName, inspect.Query{State: of, NewestFirst: i == 1, Limit: 50})
				return err
			},
		})
	}
	return both
}

// actions change 100 tasks of a list: of pending ones the last, which do not start meanwhile.
var actions = []view{
	{"delete the last 100 pending tasks", act(state.Pending, inspect.Delete())},
	{"archive the last 100 pending tasks", act(state.Pending, inspect.Archive())},
	{"run the first 100 archived tasks now", act(state.Archived, inspect.RunNow())},
	{"reschedule the first 100 scheduled tasks", act(state.Scheduled, inspect.Reschedule(time.Now().AddDate(0, 1, 0)))},
}

func act(from state.Task, action inspect.Action) func(context.Context, *inspect.Inspector) error {
	return func(ctx context.Context, ins *inspect.Inspector) error {
		page, err := ins.Tasks(ctx, queueName, inspect.Query{
			State: from, NewestFirst: from == state.Pending, Limit: 100,
		})
		if err != nil {
			return err
		}
		var ids []string
		for _, t := range page.Tasks {
			ids = append(ids, t.ID)
		}
		_, err = ins.Do(ctx, queueName, action, ids...)
		return err
	}
}
