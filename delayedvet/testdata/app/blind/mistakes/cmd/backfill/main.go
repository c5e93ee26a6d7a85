// Command backfill puts old orders into the index again.
package main

import (
	"fmt"
	"os"

	"github.com/godelayed/delayed"
)

func reindex(orderID int64) error {
	_, err := fmt.Println("reindex", orderID)
	return err
}

func main() {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	q := delayed.NewQueue("backfill", rdb)
	for id := int64(1); id < 1000; id++ {
		if _, err := q.Delay(reindex, id); err != nil { // want `main.reindex: expected a function of a package that workers can import, found one of package main`
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
