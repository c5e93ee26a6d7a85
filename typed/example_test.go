package typed_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/typed"
)

// exampleTB lets the example, which has no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func ExampleFunc2() {
	rdb, err := delayed.Dial(redistest.Shared(exampleTB{}).URL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	q := delayed.NewQueue("example-typed", rdb)
	welcome := func(ctx context.Context, userID int64, lang string) error { return nil }

	Welcome := typed.Func2(welcome, delayed.Name("mail.Welcome")) // a function of a package needs no Name
	ref, err := Welcome.Delay(q, 42, "en")                        // Welcome.Delay(q, "42") does not compile
	fmt.Println(ref.ID() != "", err)
	// Output: true <nil>
}
