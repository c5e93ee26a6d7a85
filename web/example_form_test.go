package web_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// sample has a field of each kind.
type sample struct {
	On    bool
	Small int8
	Big   uint64
	Share float32
	Name  string
	Raw   []byte
	When  time.Time
	List  []string
	Fixed [2]int
	Maps  map[int]map[string]bool
	Any   any
	Next  *sample
}

// The examples that the form shows are calls that it takes.
func TestExamplesAreCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fn := delayed.Func(func(sample, *sample, []sample, [2]byte, time.Duration, *string, any) {}, delayed.Name("x.All"))
	b.work(delayed.WorkerConfig{}, fn)
	var page string
	b.Until("the form has fields", func() bool {
		page = b.get(web.Admin, "enqueue?queue=mail")
		return strings.Contains(page, "x.All")
	})
	page = b.get(web.Admin, "enqueue?queue=mail&function=x.All")
	fields := []string{"queue", queueName, "function", "x.All", "o-id", "all", "o-in", "1h"}
	examples := regexp.MustCompile(`name="(arg\d)".*? placeholder="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(examples) != 7 {
		t.Fatalf("%d fields: %q", len(examples), examples)
	}
	for _, e := range examples {
		fields = append(fields, e[1], strings.NewReplacer("&#34;", `"`, "&#43;", "+").Replace(e[2]))
	}
	b.enqueued("all", fields...)
}
