// Command seed gives the crawler addresses to begin with.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/crawler/page"
	"example.com/app/blind/apps/crawler/work"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	q, err := delayed.OpenQueue(work.Queue, rdb, delayed.QueueConfig{Check: true})
	if err != nil {
		return err
	}
	var addresses []page.Address
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		address, err := page.Parse(lines.Text())
		if err != nil {
			return err
		}
		addresses = append(addresses, address)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	ref, err := work.Headers.Delay(q, addresses[0], []string{"Server", "Date"}, 2, 5*time.Second)
	if err != nil {
		return err
	}
	headers, err := work.Headers.Await(ctx, ref)
	if err != nil {
		return err
	}
	fmt.Println(addresses[0], "is served by", headers["Server"])
	py := delayed.NewPyTask("classify.tasks:page", []any{string(addresses[0]), 3}, map[string]any{"lang": "en"})
	if _, err := delayed.NewQueue("classify", rdb).Enqueue(ctx, py); err != nil {
		return err
	}
	n, err := work.Seed(ctx, q, 1<<20, addresses...)
	fmt.Println("seeded", n, "of", len(addresses))
	return err
}
