package child

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// sleeper waits in a function that is visible in stacks.
func sleeper(leave chan struct{}, _ int) { <-leave }

// deep waits deep in the stack.
func deep(n int, leave chan struct{}) {
	if n == 0 {
		<-leave
		return
	}
	deep(n-1, leave)
}

func TestStackInADump(t *testing.T) {
	leave, ids := make(chan struct{}), make(chan uint64)
	defer close(leave)
	go func() {
		go sleeper(leave, 42)
		ids <- GoroutineID()
		deep(3, leave)
	}()
	parent := <-ids
	var text string
	for !strings.Contains(text, "child.sleeper") || strings.Count(text, "child.deep(...)") < 4 {
		runtime.Gosched() // until both wait
		text = StackIn(DumpStacks(), parent)
	}
	if !strings.HasPrefix(text, fmt.Sprintf("goroutine %d [", parent)) || strings.Contains(text, "0x2a") ||
		strings.Contains(text, "tRunner") ||
		strings.Count(text, "\ngoroutine ") != 1 || !strings.Contains(text, "stack_test.go:") {
		t.Errorf("the stack shows too much or too little:\n%s", text)
	}
	if StackIn(DumpStacks(), 1<<60) != "" || StackIn(nil, parent) != "" || StackIn(DumpStacks(), 0) != "" {
		t.Error("stacks of nobody")
	}
}

func TestStackIsBounded(t *testing.T) {
	line := "main.f(0x1)\n\t/main.go:1 +0x1\n"
	dump := "goroutine 1 [running]:\n" + line + "\ngoroutine 22 [select]:\n" + strings.Repeat(line,
		1000) + "created by main in goroutine 1\n\t/main.go:1"
	text := StackIn([]byte(dump), 22)
	if len(text) > maxStuckStack || len(text) < maxStuckStack-100 || !strings.HasSuffix(text, cut) ||
		!strings.HasPrefix(text, "goroutine 22 [select]:\nmain.f(...)\n") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
	text = StackIn([]byte(dump), 1)
	if !strings.HasPrefix(text, "goroutine 1 [running]:\nmain.f(...)\n\t/main.go:1 +0x1\n\ngoroutine 22 [select]:\n") ||
		len(text) > maxStuckStack {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestGoroutineOf(t *testing.T) {
	for text, want := range map[string]uint64{
		"goroutine 7 [running]:\n": 7, "goroutine x": 0, "": 0, "goroutines 7": 0,
		"goroutine -1 ": 0,
	} {
		if id, ok := goroutineOf([]byte(text)); id != want || ok != (want > 0) {
			t.Errorf("%q: %d, %t", text, id, ok)
		}
	}
}

func BenchmarkGoroutineID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		GoroutineID()
	}
}
