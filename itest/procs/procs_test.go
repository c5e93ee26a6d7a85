//go:build unix

package procs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/childproc"
)

type greeting struct {
	Name  string
	Times int
}

var greeter = Define("greeter", func(ctx context.Context, g greeting) error {
	for range g.Times {
		fmt.Fprintln(os.Stderr, "hello "+g.Name)
	}
	<-ctx.Done()
	if g.Name == "nobody" {
		return errors.New("nobody to greet")
	}
	return nil
})

func TestMain(m *testing.M) {
	RunChild()
	os.Exit(m.Run())
}

func awaitOutput(t *testing.T, p *childproc.Process, want string) {
	t.Helper()
	late := time.After(60 * time.Second)
	for p.Output() != want {
		select {
		case <-late:
			t.Fatalf("expected output %q, found %q", want, p.Output())
		case <-time.After(time.Millisecond):
		}
	}
}

func TestRole(t *testing.T) {
	p := greeter.Start(t, greeting{"world", 2})
	awaitOutput(t, p, "hello world\nhello world\n")
	if err := p.Stop(10 * time.Second); err != nil || p.ExitCode() != 0 {
		t.Errorf("%v, %s", err, p.Describe())
	}
}

func TestRoleFails(t *testing.T) {
	p := greeter.Start(t, greeting{"nobody", 1})
	awaitOutput(t, p, "hello nobody\n")
	if err := p.Stop(10 * time.Second); err != nil || p.ExitCode() != 1 {
		t.Errorf("%v, %s", err, p.Describe())
	}
	if !strings.HasSuffix(p.Output(), "greeter: nobody to greet\n") {
		t.Errorf("printed %q", p.Output())
	}
}

func TestUnknownRole(t *testing.T) {
	p := Role[int]{"stranger"}.Start(t, 1)
	if p.ExitCode() != 2 {
		t.Error(p.Describe())
	}
}

func TestTwoRolesOfOneName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("expected a panic")
		}
	}()
	Define("greeter", func(context.Context, int) error { return nil })
}

func TestChildEndsWithItsTest(t *testing.T) {
	var p *childproc.Process
	t.Run("inner", func(t *testing.T) { p = greeter.Start(t, greeting{}) })
	if p.Running() {
		t.Error("the child outlived its test")
	}
}
