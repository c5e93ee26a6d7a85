// Producer delays calls that the program in ../worker runs. With Redis on localhost, or REDIS_URL set, and in directory
// examples:
//
//	go run ./producer
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/examples/mail"
)

func main() {
	if err := produce(); err != nil {
		log.Fatal(err)
	}
}

func produce() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	redis, err := delayed.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379/0"))
	if err != nil {
		return err
	}
	defer redis.Close()
	queue := delayed.NewQueue("mail", redis)

	// Now, which means as soon as a worker is free.
	ref, err := queue.DelayContext(ctx, mail.Welcome, 42, "en")
	if err != nil {
		return err
	}
	fmt.Println("delayed:", ref)

	// In two seconds; if it fails, it is tried again at most three times.
	ref, err = queue.With(delayed.In(2*time.Second), delayed.MaxRetry(3)).DelayContext(ctx, mail.Digest, 42, "Tea",
		"Biscuits")
	if err != nil {
		return err
	}
	fmt.Println("delayed by 2 s:", ref)

	// Many at once, all or none of them.
	order := mail.Order{
		ID:    7,
		Lines: []mail.Line{{Article: "Tea", Count: 2, Cents: 450}, {Article: "Biscuits", Count: 1, Cents: 199}},
	}
	refs, err := queue.DelayMany(ctx, delayed.Call(mail.Receipt, 42, order), delayed.Call(mail.Welcome, 43, "de"))
	if err != nil {
		return err
	}
	fmt.Println("delayed together:", refs)

	// By path, for a function that the program cannot import. Only the worker checks its arguments.
	ref, err = queue.Enqueue(ctx, delayed.NewGoTask("github.com/godelayed/delayed/examples/mail.Welcome", 44, "en"))
	if err != nil {
		return err
	}
	fmt.Println("delayed by path:", ref)

	// The producer notices a mistake in the arguments, not the worker.
	//delayed:allow shows the refusal
	_, err = queue.DelayContext(ctx, mail.Welcome, "forty-five", "en")
	fmt.Println("refused:", err)
	return nil
}
