package call

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// TestWrite writes arguments, reads them back, and expects the same.
func TestWrite(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 15, 4, 5, 6, time.UTC)
	type values = map[string]any
	for _, c := range []struct {
		fn   *inspect.Function
		args []any
		want string // or an error
	}{
		{function(false, 0, "int", "string"), []any{int64(42), "en\u202e"}, `[42,"en\u202e"]`},
		{function(false, 0, "float64", "any"), []any{2.0, 2.0}, "[2.0,2.0]"},
		{function(false, 0, "any"), []any{1e300}, "[1e+300]"},
		{
			function(false, 0, "[]byte", "time.Time"),
			[]any{[]byte{0, 255}, at},
			`["AP8=","2026-01-31T15:04:05.000000006Z"]`,
		},
		{function(false, 0, "[][]byte"), []any{[]any{[]byte("x")}}, `[["eA=="]]`},
		{
			function(false, 0, "mail.User"),
			[]any{values{"Name": "Ann", "Tags": []any{"a"}}},
			`[{"Name":"Ann","Tags":["a"]}]`,
		},
		{function(false, 0, "*int", "bool"), []any{nil, true}, "[null,true]"},
		{function(true, 0, "string", "[]int"), []any{"a", []any{int64(1), int64(2)}}, `["a",1,2]`},
		{function(true, 0, "[]float64"), []any{[]any{}}, "[]"},
		{function(true, 0, "[]float64"), []any{[]any{1.0}}, "[1.0]"},
		{function(false, 0, "mail.User"), []any{values{"Photo": []byte("x")}}, `[{"Photo":"eA=="}]`},
		{function(false, 0, "mail.User"), []any{values{"Other": []byte("x")}}, "argument 1: JSON cannot hold"},
		{function(false, 0, "any"), []any{at}, "argument 1: JSON cannot hold"},
		{nil, []any{int64(1), []any{"x", 1.0}}, `[1,["x",1.0]]`},
		{nil, []any{int64(1), []byte("x")}, "argument 2: JSON cannot hold"},
	} {
		task := &inspect.Task{Python: c.fn == nil}
		task.Args, task.Function = c.args, "mod:f"
		if c.fn != nil {
			task.Function = c.fn.Path
		}
		text, err := Write(task, c.fn)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || strings.HasPrefix(c.want, "[") {
				t.Errorf("%v: error %v, expected %s", c.args, err, c.want)
			}
			continue
		}
		if text != c.want {
			t.Errorf("%v is written as %s, expected %s", c.args, text, c.want)
		}
		texts, err := Split(text)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Arguments(texts, c.fn)
		if err != nil || !reflect.DeepEqual(read, c.args) {
			t.Errorf("%#v is read back as %#v (%v)", c.args, read, err)
		}
		if _, err := Edited(task, c.fn, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPublished finds the one function of a task.
func TestPublished(t *testing.T) {
	t.Parallel()
	one, other := function(false, 0, "int"), function(false, 0, "string")
	task := new(inspect.Task)
	task.Function = one.Path
	if fn, err := Published([]inspect.Function{*one, *one}, task); err != nil || fn.Signature() != one.Signature() {
		t.Errorf("found %v, %v", fn, err)
	}
	for want, all := range map[string][]inspect.Function{
		"no worker of its queue has published mail.Send": nil,
		"mail.Send(int) and mail.Send(string)":           {*one, *other},
	} {
		if _, err := Published(all, task); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}
