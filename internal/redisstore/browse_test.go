package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// storedTexts shows values, and the sizes of those that were not read.
func storedTexts(values []Stored, err error) (any, error) {
	var texts []string
	for _, v := range values {
		switch {
		case v.Size > 0:
			texts = append(texts, fmt.Sprintf("(%d bytes)", v.Size))
		case v.Bytes == nil:
			texts = append(texts, "-")
		default:
			texts = append(texts, fmt.Sprintf("%.20q", v.Bytes))
		}
	}
	return strings.Join(texts, " "), err
}

func fieldsWith(most int, ids ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return storedTexts(s.someFields(bg, s.keys.tasks, ids, most)) }
}

// filledTasks are tasks filed nowhere.
func filledTasks(h redistest.Hash) redistest.State { return redistest.State{"_tasks": h} }

var fieldsCases = storeTable{script: "fields", cases: []storeCase{
	{name: "nothing there", do: fieldsWith(10, "x", "y"), result: "- -"},
	{
		name: "all, an empty one too", seed: filledTasks(redistest.Hash{"x": "m x", "y": ""}),
		do: fieldsWith(10, "x", "z", "y"), result: `"m x" - ""`,
	},
	{
		name: "of one that is too large its size", seed: filledTasks(redistest.Hash{"x": "four", "y": "fiver"}),
		do: fieldsWith(4, "y", "x", "y"), result: `(5 bytes) "four" (5 bytes)`,
	},
	{
		name: "as many bytes as one call reads",
		seed: filledTasks(redistest.Hash{"x": big("x", MaxCallBytes/2), "y": "m"}),
		do: func(s *Store) (any, error) {
			values, err := s.someFields(bg, s.keys.tasks, []string{"x", "x", "y"}, MaxCallBytes)
			return len(values), err
		}, result: 2,
	},
	{
		name: "the first in any case", seed: filledTasks(redistest.Hash{"x": big("x", MaxCallBytes+1), "y": "m"}),
		do: func(s *Store) (any, error) {
			values, err := s.someFields(bg, s.keys.tasks, []string{"x", "y"}, MaxCallBytes+1)
			return len(values), err
		}, result: 1,
	},
}}

func pageWith(from, n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return storedTexts(s.pageFrom(bg, s.keys.list, from, n, false)) }
}

func pageBack(from, n int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return storedTexts(s.pageFrom(bg, s.keys.list, from, n, true)) }
}

var pageCases = storeTable{script: "page", cases: []storeCase{
	{name: "nothing there", do: pageWith(0, 10), result: ""},
	{
		name: "all", seed: redistest.State{"": messages(3), "_noti": ones(3)}, do: pageWith(0, 10),
		result: `"message0" "message1" "message2"`,
	},
	{
		name: "some", seed: redistest.State{"": messages(20), "_noti": ones(20)}, do: pageWith(9, 2),
		result: `"message9" "message10"`,
	},
	{
		name: "the last", seed: redistest.State{"": messages(20), "_noti": ones(20)}, do: pageWith(18, 10),
		result: `"message18" "message19"`,
	},
	{
		name: "of one that is too large its size",
		seed: redistest.State{"": redistest.List{"a", big("b", wire.WorkerLimits.Bytes+1), "c"}, "_noti": ones(3)},
		do:   pageWith(1, 10), result: `(1052673 bytes)`,
	},
	{
		name: "back", seed: redistest.State{"": messages(20), "_noti": ones(20)}, do: pageBack(2, 10),
		result: `"message2" "message1" "message0"`,
	},
	{
		name: "back from the end", seed: redistest.State{"": messages(20), "_noti": ones(20)}, do: pageBack(-1, 2),
		result: `"message19" "message18"`,
	},
	{
		name: "back from behind the end", seed: redistest.State{"": messages(3), "_noti": ones(3)}, do: pageBack(4, 3),
		result: `"-" "-" "message2"`,
	},
	{
		name: "back from nowhere", seed: redistest.State{"": messages(3), "_noti": ones(3)}, do: pageBack(-4, 3),
		result: "",
	},
	{
		name: "those with a text",
		seed: redistest.State{
			"": redistest.List{big("a-1", wire.WorkerLimits.Bytes+1), "a-1", "b", "-", "xa-1x"}, "_noti": ones(5),
		},
		do: func(s *Store) (any, error) {
			found, looked, err := s.SeekPending(bg, 1, "a-1")
			if err != nil {
				return nil, err
			}
			inLarge, one, err := s.SeekPending(bg, 4, "a-1")
			return fmt.Sprintf("%s in %d, %d in %d", found[0].Bytes, looked, len(inLarge), one), err
		},
		result: "a-1 in 3, 0 in 1",
	},
	{
		name: "as many bytes as fit",
		seed: redistest.State{"": redistest.List(append(strings.Fields(fullClaim), "e")), "_noti": ones(5)},
		do: func(s *Store) (any, error) {
			values, err := s.pageFrom(bg, s.keys.list, 0, 10, false)
			return len(values), err
		}, result: 4,
	},
}}

// TestFieldsOfSeveralCalls reads more than one call returns.
func TestFieldsOfSeveralCalls(t *testing.T) {
	b, s := sizedStore(t)
	ids := make([]string, 12)
	for i := range ids {
		ids[i] = fmt.Sprint("id", i)
		b.Do("HSET", s.keys.tasks, ids[i], big(string(rune('a'+i)), 1<<20))
	}
	values, err := s.fields(bg, s.keys.tasks, ids, 1<<20)
	if err != nil || len(values) != len(ids) {
		t.Fatalf("%d values, %v", len(values), err)
	}
	for i, v := range values {
		if len(v) != 1<<20 || v[0] != byte('a'+i) {
			t.Errorf("value %d has %d bytes", i, len(v))
		}
	}
}

// shelfWith lists ids with their scores.
func shelfWith(after SetPlace, n int, back bool) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		page, err := s.members(bg, s.keys.scheduled, after, n, back)
		var text strings.Builder
		for _, m := range page {
			fmt.Fprint(&text, " ", m.ID, ":", m.At.UnixMilli())
		}
		return text.String(), err
	}
}

var shelfCases = func() storeTable {
	seed := filedAs("_scheduled", redistest.Zset{"a": 1, "b": 2, "c": 2, "d": 2, "é": 2, "e": 3})
	page := func(name string, after SetPlace, n int, back bool, want string) storeCase {
		return storeCase{name: name, seed: seed, do: shelfWith(after, n, back), result: want}
	}
	long := strings.Repeat("n", 700)
	return storeTable{script: "shelf", cases: []storeCase{
		{name: "nothing there", do: shelfWith(SetPlace{}, 10, false), result: ""},
		{
			name: "long names of equal scores",
			seed: filedAs("_scheduled", redistest.Zset{
				long: 2, long + "a": 2, long + "b": 2, long + "c": 2, long + "cc": 2,
			}),
			do: shelfWith(SetPlace{"2", long + "bb"}, 10, false), result: " " + long + "c:2 " + long + "cc:2",
		},
		{name: "nothing there, from the end", do: shelfWith(SetPlace{}, 10, true), result: ""},
		page("all", SetPlace{}, 10, false, " a:1 b:2 c:2 d:2 é:2 e:3"),
		page("all, from the end", SetPlace{}, 10, true, " e:3 é:2 d:2 c:2 b:2 a:1"),
		page("the first", SetPlace{}, 2, false, " a:1 b:2"),
		page("the last", SetPlace{}, 2, true, " e:3 é:2"),
		page("behind one of equal scores", SetPlace{"2", "c"}, 2, false, " d:2 é:2"),
		page("before one of equal scores", SetPlace{"2", "d"}, 2, true, " c:2 b:2"),
		page("behind one that has gone", SetPlace{"2", "cc"}, 10, false, " d:2 é:2 e:3"),
		page("before one that has gone", SetPlace{"2", "cc"}, 10, true, " c:2 b:2 a:1"),
		page("behind one that was before them all", SetPlace{"1", "0"}, 1, false, " a:1"),
		page("behind one whose score has gone", SetPlace{"2.5", "x"}, 10, false, " e:3"),
		page("before one whose score has gone", SetPlace{"2.5", "x"}, 1, true, " é:2"),
		page("behind the last", SetPlace{"3", "e"}, 10, false, ""),
		page("before the first", SetPlace{"1", "a"}, 10, true, ""),
		page("behind a round score", SetPlace{"4e+12", "a"}, 10, false, ""),
	}}
}()
