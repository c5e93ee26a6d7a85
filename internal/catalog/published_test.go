package catalog

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// listed reads a list as a worker publishes it.
func listed(t *testing.T, functions, rest string) *Listing {
	t.Helper()
	l := ParseListing([]byte(`{"version": 1, "functions": [` + functions + `]` + rest + `}`))
	if l == nil {
		t.Fatalf("%s %s cannot be read", functions, rest)
	}
	return l
}

const (
	welcome = `{"path": "app/mail.Welcome", "aliases": ["app/letters.Welcome"], "parameters": [
		{"go": "int32", "type": {"kind": "int32"}}, {"go": "string", "type": {"kind": "string"}}]}`
	newWelcome = `{"path": "app/mail.Welcome", "parameters": [
		{"go": "int32", "type": {"kind": "int32"}}, {"go": "bool", "type": {"kind": "bool"}}]}`
	visit = `{"path": "app/shop.Visit", "variadic": true, "optional": 2, "parameters": [
		{"go": "shop.Address", "type": {"kind": "ref", "name": "app/shop.Address"}},
		{"go": "[]uint8", "type": {"kind": "list", "elem": {"kind": "uint8"}}},
		{"go": "[]bool", "type": {"kind": "list", "elem": {"kind": "bool"}}}]}`
	address = `, "types": {"app/shop.Address": {"kind": "struct", "fields": [
		{"name": "Street", "type": {"kind": "string"}},
		{"name": "Numbers", "type": {"kind": "list", "elem": {"kind": "int8"}}},
		{"name": "Next", "type": {"kind": "optional", "elem": {"kind": "ref", "name": "app/shop.Address"}}}]}}`
	kinds = `{"path": "app/kinds.All", "variadic": true, "parameters": [
		{"go": "[]byte", "type": {"kind": "bytes"}}, {"go": "float32", "type": {"kind": "float32"}},
		{"go": "float64", "type": {"kind": "float64"}}, {"go": "[]int8", "type": {"kind": "list", "elem":
		{"kind": "int8"}}}]}`
	send = `{"path": "post.tasks:send", "optional": 1, "parameters": [
		{"name": "to", "go": "str", "type": {"kind": "string"}},
		{"name": "times", "go": "int", "type": {"kind": "int64"}},
		{"name": "more", "go": "Any", "type": {"kind": "any"}}]}`
)

// TestMisfits compares calls with one function each.
func TestMisfits(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	list := func(values ...any) []any { return values }
	all := Published{listed(t, welcome+","+visit+","+send+","+kinds, address)}
	const mail, shop, post, all4 = "app/mail.Welcome", "app/shop.Visit", "post.tasks:send", "app/kinds.All"
	for _, c := range []struct {
		path   string
		args   []any
		kwargs object
		want   string // "" for none
	}{
		{mail, list(int64(7), "en"), nil, ""},
		{"app/letters.Welcome", list(int64(7), "en"), nil, ""},
		{mail, list(int64(7)), nil, "expected the arguments of mail.Welcome(int32, string), found 1"},
		{mail, nil, nil, "expected the arguments of mail.Welcome(int32, string), found 0"},
		{mail, list(int64(7), "en", true), nil, "expected the arguments of mail.Welcome(int32, string), found 3"},
		{mail, list("7", "en"), nil, "1 of mail.Welcome(int32, string) does not fit: expected int32, found a str"},
		{mail, list(int64(1)<<31, "en"), nil, "expected int32, found the number 2147483648"},
		{mail, list(1.0, "en"), nil, "expected int32, found the number 1"},
		{mail, list(int64(7), nil), nil, "2 of mail.Welcome(int32, string) does not fit: expected string, fou"},

		{all4, list([]byte("b"), 1.5, 0.1, list(int64(1))), nil, ""},
		{all4, list(nil, float32(0.1), int64(math.MinInt64)), nil, ""},
		{all4, list(nil, math.NaN(), uint64(1)<<63), nil, ""},
		{all4, list("text", 1.5, 0.1), nil, "expected []byte, found a str"},
		{all4, list(nil, 0.1, 0.1), nil, "expected float32, found the number 0.1"},
		{all4, list(nil, int64(1)<<24+1, 0.1), nil, "expected float32, found the number 16777217"},
		{all4, list(nil, 1.5, -(int64(1)<<53 + 1)), nil, "expected float64, found the number -9007199254740993"},
		{all4, list(nil, 1.5, uint64(math.MaxUint64)), nil, "expected float64, found the number 18446744073709551615"},
		{all4, list(nil, 1.5, 0.1, nil), nil, "expected int8, found nil"},

		{shop, list(object{"Street": "Elm", "Numbers": list(int64(7)), "Next": nil}, list()), nil, ""},
		{shop, list(object{"Next": object{"Next": object{}}}, nil, true, false), nil, ""},
		{shop, list(object{}, list(), list(true, false)), nil, ""}, // as on the wire
		{shop, list(list("Elm", list(int64(7)))), nil, ""},         // by position
		{shop, list(), nil, "expected the arguments of shop.Visit(shop.Address, []uint8, ...bool), found 0"},
		{
			shop, list(object{"Strasse": "Elm"}, nil), nil,
			"expected fields of shop.Address: Street, Numbers, Next, found another one",
		},
		{
			shop, list(object{"Next": object{"Numbers": list(int64(1), int64(128))}}, nil), nil,
			"expected int8 at .Next.Numbers[1], found the number 128",
		},
		{shop, list(object{"Street": []byte("Elm")}, nil), nil, "expected string at .Street, found bytes"},
		{shop, list(list("Elm", nil, nil, "more"), nil), nil, "found 4"},
		{shop, list(list(true), nil), nil, "expected string at .Street, found a bool"},
		{shop, list(time.Now(), nil), nil, "expected shop.Address, found a time"},
		{shop, list(object{}, list(int64(256))), nil, "expected uint8 at [0], found the number 256"},
		{shop, list(object{}, nil, true, "x"), nil, "argument 4 of shop.Visit"},
		{shop, list(object{}, nil, "x"), nil, "expected bool, found a string"},

		{post, list("ann", int64(2)), nil, ""},
		{post, list("ann"), object{"times": uint64(1) << 63, "quiet": true}, ""},
		{post, nil, object{"to": "ann", "times": true}, ""},
		{post, list("ann"), nil, "found 1"},
		{post, list("ann"), object{"times": "2"}, "times of post.tasks:send(to str, times int, more Any) does not"},
		{post, list("ann"), object{"to": "bob", "times": int64(2)}, "expected it once, found it given twice"},
	} {
		err := all.Check(c.path, c.args, c.kwargs, true)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s(%v, %v): error %v, expected %q", c.path, c.args, c.kwargs, err, c.want)
		case err != nil && !errors.As(err, new(*MisfitError)):
			t.Errorf("%s(%v, %v): error of type %T", c.path, c.args, c.kwargs, err)
		}
		if err := all.Check(c.path, c.args, c.kwargs, false); err != nil {
			t.Errorf("%s: error %v about arguments that are unknown", c.path, err)
		}
	}
}

// TestPublished compares calls with what several workers publish.
func TestPublished(t *testing.T) {
	t.Parallel()
	old, fresh := listed(t, welcome, ""), listed(t, newWelcome, "")
	python, cut := listed(t, send, ""), listed(t, send, `, "more": 3`)
	for _, c := range []struct {
		name string
		all  Published
		path string
		args []any
		want string
	}{
		{"the old version", Published{old, fresh}, "app/mail.Welcome", []any{int64(1), "en"}, ""},
		{"the new version", Published{old, fresh}, "app/mail.Welcome", []any{int64(1), true}, ""},
		{"neither version", Published{old, fresh}, "app/mail.Welcome", []any{int64(1), 2.0}, "expected string"},
		{"an alias of the old one", Published{old, fresh}, "app/letters.Welcome", []any{int64(1), "en"}, ""},
		{"a misspelled path", Published{old, python}, "app/mail.Welcom", nil, "did you mean app/mail.Welcome?"},
		{"an unknown path", Published{old}, "app/search.Index", nil, "has registered: app/mail.Welcome"},
		{"nobody runs", nil, "app/mail.Welcom", nil, ""},
		{"only Python runs", Published{python}, "app/mail.Welcom", nil, ""},
		{"only Go runs", Published{old}, "post.tasks:sent", nil, ""},
		{"Python, misspelled", Published{old, python}, "post.tasks:sent", nil, "did you mean post.tasks:send?"},
		{"one has published nothing", Published{old, nil}, "app/mail.Welcom", nil, ""},
		{"misfit beside one that has published nothing", Published{old, nil}, "app/mail.Welcome", nil, ""},
		{"one has published a part", Published{python, cut}, "post.tasks:other", nil, ""},
		{"what that part has", Published{cut}, "post.tasks:send", nil, "found 0"},
	} {
		err := c.all.Check(c.path, c.args, nil, true)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, expected %q", c.name, err, c.want)
		}
	}
	many := make([]string, 8)
	for i := range many {
		many[i] = `{"path": "app/jobs.Job` + string(rune('A'+i)) + `", "parameters": []}`
	}
	err := Published{listed(t, strings.Join(many, ","), "")}.Check("app/other.Thing", nil, nil, true)
	const want = "app/jobs.JobA, app/jobs.JobB, app/jobs.JobC, app/jobs.JobD, app/jobs.JobE, or one of 3 others"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, expected %s", err, want)
	}
}

// TestStrangeListings: what a worker of another version or a hostile one publishes does no harm.
func TestStrangeListings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", "[]", `{"version": 2, "functions": []}`, strings.Repeat(" ", MostBytes) + `{"version": 1}`,
	} {
		if ParseListing([]byte(text)) != nil {
			t.Errorf("%.20q is a list", text)
		}
	}
	endless := listed(t, `{"path": "f", "parameters": [{"go": "T", "type": {"kind": "ref", "name": "T"}}]}`,
		`, "types": {"T": {"kind": "optional", "elem": {"kind": "ref", "name": "T"}}}`)
	strange := listed(t, `{"path": "f", "variadic": true, "optional": -3},
		{"path": "g", "optional": 9, "parameters": [{}]},
		{"path": "h", "parameters": [{"type": {"kind": "ref", "name": "gone"}}, {"type": {"kind": "list"}},
			{"type": {"kind": "map"}},
			{"type": {"kind": "struct", "fields": [{"name": "a"}]}}, {"type": {"kind": "new"}}]}`,
		"")
	for _, p := range []Published{{endless}, {strange}} {
		for _, path := range []string{"f", "g", "h"} {
			for n := range 7 {
				for _, v := range []any{nil, int64(1), "x", []any{1.0}, map[string]any{"a": nil}, map[any]any{1: 2}} {
					args := make([]any, n)
					for i := range args {
						args[i] = v
					}
					_ = p.Check(path, args, map[string]any{"": v}, true)
				}
			}
		}
	}
}
