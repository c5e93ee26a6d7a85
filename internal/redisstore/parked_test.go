package redisstore

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// TestParkedList reads parked tasks page by page, and changes nothing.
func TestParkedList(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	seed := redistest.State{
		"_parked": redistest.Zset{"a": past, "b": round, "c": later, "d": later + 1},
		"_tasks":  redistest.Hash{"a": "m a", "c": "m c", "d": "m d"},
		"_info":   redistest.Hash{"a": "i a", "b": "i b", "d": "i d"},
	}
	redistest.Seed(t, server.Dial(t), name, seed)
	listed := func(id string, at int64, info []byte) ListedTask {
		return ListedTask{ID: id, At: time.UnixMilli(at), Info: info}
	}
	a, b := listed("a", past, []byte("i a")), listed("b", round, []byte("i b"))
	c, d := listed("c", later, nil), listed("d", later+1, []byte("i d"))
	for _, test := range []struct {
		offset, n int
		want      []ListedTask
	}{
		{0, 10, []ListedTask{a, b, c, d}},
		{0, 1, []ListedTask{a}},
		{1, 2, []ListedTask{b, c}},
		{3, 9, []ListedTask{d}},
		{4, 1, nil},
		{9, 1, nil},
	} {
		page, total, err := s.FiledList(bg, ShelfParked, test.offset, test.n)
		for i := range page {
			page[i].Score = "" // servers write it in several ways
		}
		if err != nil || total != 4 || !reflect.DeepEqual(page, test.want) {
			t.Errorf("%d from %d: expected %v of 4, found %v of %d, %v", test.n, test.offset, test.want, page, total,
				err)
		}
	}
	if diff := redistest.Diff(redistest.Dump(t, server.Dial(t), name), seed); diff != "" {
		t.Errorf("reading has changed something: %s", diff)
	}
	none := NewStore(s.Src, "", name+"-none")
	if page, total, err := none.FiledList(bg, ShelfParked, 0, 10); err != nil || total != 0 || page != nil {
		t.Errorf("nothing parked: found %v of %d, %v", page, total, err)
	}
	for _, key := range []string{"_info", "_parked"} {
		server.Do(t, "SET", name+key, "x")
		if _, _, err := s.FiledList(bg, ShelfParked, 0, 1); err == nil {
			t.Errorf("%s of the wrong type gave no error", key)
		}
	}
}

var condemnCases = storeTable{script: "condemn", cases: []storeCase{
	{
		name: "due, in another set",
		seed: filedAs("_retry", redistest.Zset{"x": past, "y": later}),
		do: func(s *Store) (any, error) {
			return s.Condemn(bg, ShelfRetry, time.Hour, []Filed{
				{ID: "x", Info: []byte("why")}, {ID: "y", Info: []byte("why")},
			})
		},
		result: 1,
		want: redistest.State{
			"_retry": redistest.Zset{"y": later}, "_archived": redistest.Zset{"x": fromNow(time.Hour)},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y"}, "_info": redistest.Hash{"x": "why", "y": "i y"},
			testDay: counted(redistest.Hash{"archived": "1"}),
		},
	},
	{
		name:   "some",
		seed:   filedAs("_parked", redistest.Zset{"x": past, "y": past, "z": past}),
		do:     condemnWith(Filed{ID: "x", Info: []byte("why")}, Filed{ID: "z", Info: []byte("why too")}),
		result: 2,
		want: redistest.State{
			"_parked":   redistest.Zset{"y": past},
			"_archived": redistest.Zset{"x": fromNow(time.Hour), "z": fromNow(time.Hour)},
			"_tasks":    redistest.Hash{"x": "m x", "y": "m y", "z": "m z"},
			"_info":     redistest.Hash{"x": "why", "y": "i y", "z": "why too"},
			testDay:     counted(redistest.Hash{"archived": "2"}),
		},
	},
	{
		name: "their ids and locks are free, those of others are not",
		seed: both(filedAs("_parked", redistest.Zset{"x": past, "y": later}),
			locked(later, redistest.Hash{"k:a": "x", "#x": "x", "k:b": "y"})),
		do: condemnWith(Filed{ID: "x", Info: []byte("why"), Lock: "k:a"},
			Filed{ID: "y", Info: []byte("why too"), Lock: "k:b"}),
		result: 1,
		want: both(redistest.State{
			"_parked": redistest.Zset{"y": later}, "_archived": redistest.Zset{"x": fromNow(time.Hour)},
			"_tasks": redistest.Hash{"x": "m x", "y": "m y"}, "_info": redistest.Hash{"x": "why", "y": "i y"},
			testDay: counted(redistest.Hash{"archived": "1"}),
		}, locked(later, redistest.Hash{"k:b": "y"})),
	},
	{
		name:   "one that is not parked any more",
		seed:   redistest.State{"": redistest.List{"m x"}, "_noti": ones(1)},
		do:     condemnWith(Filed{ID: "x", Info: []byte("why")}),
		result: 0,
	},
	{
		name: "counters exist",
		seed: with(filedAs("_parked", redistest.Zset{"x": past}), redistest.State{
			testDay: redistest.Expiring{Value: redistest.Hash{"archived": "4"}, For: time.Hour},
		}),
		do:     condemnWith(Filed{ID: "x", Info: []byte("why")}),
		result: 1,
		want: redistest.State{
			"_archived": redistest.Zset{"x": fromNow(time.Hour)}, "_tasks": redistest.Hash{"x": "m x"},
			"_info": redistest.Hash{"x": "why"},
			testDay: redistest.Expiring{Value: redistest.Hash{"archived": "5"}, For: time.Hour},
		},
	},
}}

// TestParkedPage reads parked tasks page by page.
func TestParkedPage(t *testing.T) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	s := NewStore(dialled(t, server.URL()), "", name)
	seed := redistest.State{
		"_parked": redistest.Zset{"a": past, "b": past + 1, "c": later, "d": later + 1},
		"_tasks":  redistest.Hash{"a": "m a", "c": "m c", "d": "m d"},
		"_info":   redistest.Hash{"a": "i a", "b": "i b", "d": "i d"},
	}
	redistest.Seed(t, server.Dial(t), name, seed)
	for _, c := range []struct {
		offset, n int
		expired   bool
		want      string
	}{
		{0, 2, false, "c= d=i d "},
		{2, 2, false, "a=i a b=i b "},
		{3, 9, false, "a=i a "},
		{4, 9, false, ""},
		{0, 9, true, "a=i a b=i b "},
		{1, 9, true, "b=i b "},
		{0, 1, true, "a=i a "},
	} {
		page, err := s.ParkedPage(bg, c.offset, c.n, c.expired)
		var text strings.Builder
		for _, f := range page {
			fmt.Fprintf(&text, "%s=%s ", f.ID, f.Info)
		}
		if err != nil || text.String() != c.want {
			t.Errorf("%d from %d, expired %v: expected %q, found %q, %v", c.n, c.offset, c.expired, c.want, &text, err)
		}
	}
	if _, err := redis.String(server.Do(t, "SET", name+"_info", "x"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ParkedPage(bg, 0, 1, false); err == nil {
		t.Error("a key of the wrong type gave no error")
	}
}

// unparkWith lets worker w take parked tasks as batch 7.
func unparkWith(most int, ids ...string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		got, err := s.Unpark(bg, ClaimCall{Worker: "w", Batch: 7, Most: most, Parked: ids})
		var text strings.Builder
		fmt.Fprintf(&text, "%d looked at, version %d:", got.Left, got.Version)
		for _, m := range got.Messages {
			if b, ok := m.([]byte); ok {
				m = fmt.Sprintf("%.3s", b)
			}
			fmt.Fprintf(&text, " %v", m)
		}
		return text.String(), err
	}
}

// adopted is what worker w holds then.
func adopted(messages ...string) redistest.State {
	hash := redistest.Hash{}
	for i, m := range messages {
		hash[fmt.Sprint("7-", i+1)] = m
	}
	return with(queued("p", 1), redistest.State{"_processing:w": hash, "_claims:w": redistest.Hash{"7": nowMark}})
}

var parkedXY = with(queued("p", 1), filedAs("_parked", redistest.Zset{"x": past, "y": later}))

var fullSize = big("x", wire.WorkerLimits.Bytes)

// quarter is a message of which one call takes four.
var quarter = big("x", wire.WorkerLimits.Bytes/4)

var unparkCases = storeTable{script: "unpark", cases: []storeCase{
	{
		name:   "some, in the order asked for",
		seed:   with(queued("p", 1), filedAs("_parked", redistest.Zset{"x": past, "y": later, "z": later})),
		do:     unparkWith(9, "y", "x"),
		result: "2 looked at, version 0: m y m x",
		want:   with(adopted("m y", "m x"), filedAs("_parked", redistest.Zset{"z": later})),
	},
	{
		name:   "as many as there is room for",
		seed:   with(parkedXY, redistest.State{"_control": oneVersion}),
		do:     unparkWith(1, "v", "x", "y"),
		result: "2 looked at, version 5: m x",
		want: with(with(adopted("m x"), filedAs("_parked", redistest.Zset{"y": later})),
			redistest.State{"_control": oneVersion}),
	},
	{
		name: "as many bytes as one claim has",
		seed: with(queued("p", 1), redistest.State{
			"_parked": redistest.Zset{"v": past, "w": past, "x": past, "y": past, "z": past},
			"_tasks":  redistest.Hash{"v": quarter, "w": quarter, "x": quarter, "y": quarter, "z": "z"},
		}),
		do:     unparkWith(9, "v", "w", "x", "y", "z"),
		result: "4 looked at, version 0: xxx xxx xxx xxx",
		want: with(adopted(quarter, quarter, quarter, quarter), redistest.State{
			"_parked": redistest.Zset{"z": past}, "_tasks": redistest.Hash{"z": "z"},
		}),
	},
	{
		name: "of a message that is too large its size",
		seed: with(queued("p", 1), redistest.State{
			"_parked": redistest.Zset{"x": past, "y": past}, "_tasks": redistest.Hash{"x": fullSize + "x", "y": "m y"},
		}),
		do:     unparkWith(9, "x", "y"),
		result: fmt.Sprintf("1 looked at, version 0: %d", wire.WorkerLimits.Bytes+1),
		want: with(adopted(fullSize+"x"), redistest.State{
			"_parked": redistest.Zset{"y": past}, "_tasks": redistest.Hash{"y": "m y"},
		}),
	},
	{
		name: "one twice, one that is not parked",
		seed: with(with(queued("p", 1), filedAs("_parked", redistest.Zset{"x": past})),
			redistest.State{"_retry": redistest.Zset{"y": later}, "_tasks": redistest.Hash{"x": "m x", "y": "m y"}}),
		do:     unparkWith(9, "y", "x", "x", "v"),
		result: "4 looked at, version 0: m x",
		want: with(adopted("m x"),
			redistest.State{"_retry": redistest.Zset{"y": later}, "_tasks": redistest.Hash{"y": "m y"}}),
	},
	{
		name:   "another worker was faster",
		seed:   with(queued("p", 1), redistest.State{"_processing:v": redistest.Hash{"1-1": "m x"}}),
		do:     unparkWith(9, "x"),
		result: "1 looked at, version 0:",
	},
	{
		name: "ids without a message are dropped",
		seed: with(queued("p", 1), redistest.State{
			"_parked": redistest.Zset{"x": past, "y": past}, "_tasks": redistest.Hash{"y": "m y"},
			"_info": redistest.Hash{"x": "i"},
		}),
		do:     unparkWith(9, "x", "y"),
		result: "2 looked at, version 0: m y",
		want:   adopted("m y"),
	},
	{
		name:   "only one without a message",
		seed:   with(queued("p", 1), redistest.State{"_parked": redistest.Zset{"x": past}}),
		do:     unparkWith(9, "x"),
		result: "1 looked at, version 0:",
		want:   queued("p", 1),
	},
	{
		name: "no heartbeat",
		seed: with(parkedXY, redistest.State{"_worker:w": nil}),
		do:   unparkWith(9, "x"),
		err:  ErrNoHeartbeat,
	},
	{
		name: "paused",
		seed: with(parkedXY, pausedQueue),
		do:   unparkWith(9, "x"),
		err:  ErrQueuePaused,
	},
	{
		name: "batch number used before",
		seed: with(parkedXY, redistest.State{
			"_processing:w": redistest.Hash{"7-1": "a"},
			"_claims:w":     redistest.Hash{"7": "1"},
		}),
		do:  unparkWith(9, "x"),
		err: ErrBatchUsed,
	},
}}

func condemnWith(tasks ...Filed) func(s *Store) (any, error) {
	return func(s *Store) (any, error) { return s.Condemn(bg, ShelfParked, time.Hour, tasks) }
}
