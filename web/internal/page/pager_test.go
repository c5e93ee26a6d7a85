package page

import (
	"net/url"
	"testing"

	"github.com/godelayed/delayed/web/internal/site"
)

// The pages before and behind one are of the same list.
func TestPager(t *testing.T) {
	t.Parallel()
	args := url.Values{"queue": {"mail"}, "find": {"x"}, "skip": {"20"}, "notice": {"n"}}
	q := &site.Request{Path: "functions", Args: args}
	part, p := cut(q, make([]int, 45), 20)
	if len(part) != 20 || p.Before != 20 || p.After != 5 {
		t.Errorf("%d things, %+v", len(part), p)
	}
	if p.Prev != "functions?find=x&queue=mail" || p.Next != "functions?find=x&queue=mail&skip=40" {
		t.Errorf("before %q, behind %q", p.Prev, p.Next)
	}
	q.Args.Set("skip", "1000")
	if part, p = cut(q, make([]int, 45), 20); len(part) != 1 || p.Next != "" {
		t.Errorf("behind the end: %d things, %+v", len(part), p)
	}
}
