package semaphore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/semaphore"
)

// exampleTB lets the example, which has no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Only two charges run at a time, on however many workers.
func Example() {
	rdb, err := delayed.Dial(redistest.Shared(exampleTB{}).URL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()

	sem, err := semaphore.New(rdb, semaphore.Config{Name: "payments", Places: 2})
	if err != nil {
		panic(err)
	}
	charge := delayed.Func(Charge, delayed.Middleware(sem.Middleware))
	_ = charge // worker.Register(charge)

	// In other code:
	place, err := sem.Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println("charging by hand")
	if err := place.Release(); err != nil {
		fmt.Println(err) // the place is free when its lease ends
	}
	// Output: charging by hand
}

// Charge charges a customer.
func Charge(customer int) error { return nil }
