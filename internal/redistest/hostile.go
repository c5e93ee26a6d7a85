package redistest

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/wire"
)

// HostileText has what a terminal or a log must not get as it is: ends of lines, sequences of terminals, marks that
// turn the direction of writing, and bytes that are no text.
const HostileText = "mailbox\nfull:\x1b[31m red\x1b]0;title\x07\u202e\u2066\u009b\r\xff"

// HostileTexts are texts of strangers, as FillHostile writes them: a short one and a long one. For make limits, the
// long one has nearly 1 MiB: a message with it in one place is not too large for a worker. Otherwise it has an eighth
// of that, as each test looks at each byte of all of them.
var HostileTexts = []string{HostileText, strings.Repeat(HostileText, (hostileBytes()-1<<10)/len(HostileText))}

func hostileBytes() int {
	if limits.On() {
		return 1 << 20
	}
	return 1 << 17
}

// HostileMessages are messages of tasks with hostile texts in each of their places. Some are too large for one, and no
// worker accepts these.
func HostileMessages() (messages [][]byte) {
	for _, text := range HostileTexts {
		valid := strings.ToValidUTF8(text, "?")
		arg := wire.AppendString(wire.AppendArrayHeader(nil, 1), valid)
		kwargs := wire.AppendString(wire.AppendString(wire.AppendMapHeader(nil, 1), valid[:len(valid)/2]), "x")
		failures := wire.AppendArrayHeader(nil, 1)
		failures = wire.AppendInt(wire.AppendInt(wire.AppendArrayHeader(failures, 5), 1), 1)
		for range 3 {
			failures = wire.AppendString(failures, valid[:len(valid)/4])
		}
		for _, m := range []wire.Message{
			{Path: "example.com/" + valid, Meta: wire.Meta{ID: "path"}},
			{Path: "module:" + valid, Py: &wire.PyCall{}, Kind: wire.PyExtended, Meta: wire.Meta{ID: "python path"}},
			{Path: "x.Y", Meta: wire.Meta{ID: valid}},
			{Path: "x.Y", Payload: arg, Meta: wire.Meta{ID: "argument", HasN: true, N: 1}},
			{Path: "x:y", Kind: wire.PyExtended, Py: &wire.PyCall{Kwargs: kwargs}, Meta: wire.Meta{ID: "keyword"}},
			{Path: "x.Y", Meta: wire.Meta{ID: "header", Extra: &wire.Extra{Headers: map[string]string{valid: valid}}}},
			{Path: "x.Y", Meta: wire.Meta{ID: "lock", Extra: &wire.Extra{Lock: valid, Group: valid}}},
			{Path: "x.Y", Meta: wire.Meta{ID: "failures", Extra: &wire.Extra{Failures: failures}}},
		} {
			if m.Kind != wire.PyExtended {
				m.Kind = wire.GoExtended
			}
			messages = append(messages, m.Append(nil))
		}
		messages = append(messages, []byte(text)) // no message at all
	}
	return messages
}

// HostileInfo is what is known of a task, with a text in each place.
func HostileInfo(text string) []byte {
	pairs := wire.AppendMapHeader(nil, 7)
	for _, name := range []string{"reason", "function", "error", "stack", "worker", "note"} {
		pairs = wire.AppendString(wire.AppendString(pairs, name), strings.ToValidUTF8(text, "?"))
	}
	return wire.AppendInt(wire.AppendString(pairs, "at"), time.Now().UnixMilli())
}

// FillHostile fills a queue with what an attacker could write who may write to its keys: hostile texts of a few bytes
// and of 1 MiB as ids, functions, arguments, errors, names of locks, groups, entries and workers. Its registry names
// such queues too. What workers would run or move is left out: HostileMessages are for these. prefix is that of the
// registry and name that of the queue, without it.
func FillHostile(do func(cmd string, args ...any) any, prefix, name string) {
	key := prefix + name
	messages := HostileMessages()
	later := time.Now().Add(time.Hour).UnixMilli()
	for n, text := range HostileTexts {
		for _, set := range []string{"_scheduled", "_retry", "_parked", "_archived"} {
			id := set[1:] + text
			do("ZADD", key+set, later, id)
			do("HSET", key+"_tasks", id, messages[3])
			do("HSET", key+"_info", id, HostileInfo(text))
		}
		for i, message := range messages {
			id := "m" + strconv.Itoa(n) + "-" + strconv.Itoa(i)
			do("ZADD", key+"_archived", later, id)
			do("HSET", key+"_tasks", id, message)
			do("HSET", key+"_info", id, HostileInfo(text))
		}
		do("ZADD", key+"_completed", later, "done"+text)
		do("HSET", key+"_results", "done"+text, HostileInfo(text))
		do("RPUSH", key+"_group:"+text, messages[3])
		do("ZADD", key+"_groups", later, text)
		do("HSET", key+"_locks", "u:"+text, strconv.FormatInt(later, 10)+" "+text, "#"+text, text)
		do("HSET", key+"_periodic", text, text)
		do("HSET", key+"_stats:"+time.Now().UTC().Format("20060102"), text, 7)
		do("HSET", key+"_control", "version", 1, "worker:"+text, text, "paused", text)
		do("HSET", key+"_metrics:total", "0 "+text, text)
		do("HSET", prefix+"delayed_queues", text, 0, name+text, 1)
		record, _ := json.Marshal(map[string]any{ //nolint:errchkjson // it has texts only
			"actor": text, "action": text, "queue": text, "state": text, "target": text, "ids": []string{text},
		})
		do("LPUSH", prefix+"delayed_audit", record)
		worker := "worker" + text
		do("SADD", key+"_workers", worker)
		do("HSET", key+"_processing:"+worker, text, messages[3], text+"2", text)
		do("SET", key+"_worker:"+worker, text+":7:1", "PX", time.Hour.Milliseconds())
		do("HSET", key+"_functions", worker+" status", HostileStatus(text))
		parameters := []catalog.Parameter{{Name: text, Value: catalog.Value{Go: text}}}
		functions := []catalog.Function{{Path: text, Aliases: []string{text}, Params: parameters}}
		list, _ := json.Marshal(catalog.List{Version: 1, Functions: functions}) //nolint:errchkjson // it has texts
		do("HSET", key+"_functions", worker, list)
	}
	do("HSET", prefix+"delayed_queues", name, 0)
}

// HostileStatus is what a worker says of itself.
func HostileStatus(text string) []byte {
	status, _ := json.Marshal(catalog.Status{ //nolint:errchkjson // it has texts and numbers only
		Version: catalog.Version, Started: 1, Library: text, Program: text, Queues: text, State: text,
		Running: []catalog.Running{{Token: text, ID: text, Function: text, Started: 1}},
	})
	return status
}

// HostileEvents is what a worker publishes, with a text in each place.
func HostileEvents(text string) []byte {
	events, _ := json.Marshal(catalog.Broadcast{ //nolint:errchkjson // it has texts and numbers only
		Version: catalog.Version, Worker: text, Events: []catalog.Event{
			{Kind: "task failed", ID: text, Function: text, Reason: text, Error: text}, {Kind: text, At: 1},
		},
	})
	return events
}

// DoOn returns a function that calls a command, and panics if it fails.
func DoOn(conn redis.Conn) func(cmd string, args ...any) any {
	return func(cmd string, args ...any) any {
		reply, err := conn.Do(cmd, args...)
		if err != nil {
			panic(err)
		}
		return reply
	}
}
