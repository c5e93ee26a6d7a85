package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/examples/quickstart/photos"
)

// stay goes on with a photo a second until Ctrl-C, so that there is something to look at. Every tenth is missing, and
// its task fails.
func stay(ctx context.Context, queue *delayed.Queue, site *site, crew *crew, url string) error {
	if os.Getenv("REDIS_URL") != "" {
		url = `"$REDIS_URL"` // it may have a password
	}
	fmt.Printf("\nThe worker that is left goes on with a photo a second, until Ctrl-C. Look at it from "+
		"another terminal:\n\n  export DELAYED_URL=%s\n  go run ./cmd/delayed queues\n  "+
		"go run ./cmd/delayed top\n", url)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := 1; ; {
		select {
		case <-tick.C:
			name := names[i%len(names)]
			if i%10 == 0 {
				name = "missing.jpg"
			}
			_, err := queue.DelayContext(ctx, photos.Fetch, site.url+"/camera/"+name, site.url+"/photos/"+name)
			if err != nil && ctx.Err() == nil {
				return err
			}
			i++
		case <-site.visits: // nobody counts them any more
		case err := <-crew.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
