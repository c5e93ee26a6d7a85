package main

import (
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// The keys of bare tasks that have options: those that wait by id, when they are due, locks, and groups that hold some.
const (
	bareTasks  = "tasks"
	bareDues   = "due"
	bareLocks  = "locks"
	bareGroups = "groups"
)

// bareForms are what each form of optionsTable costs at least: the commands that a queue cannot do without, for all
// tasks of a pile, and no more. They check nothing, and what they write could not be run as it is.
var bareForms = map[string]func(redis.Conn, []*bareRequest) error{
	"scheduled": fileBare,
	"unique":    lockBare,
	"keyed":     lockBare,
	"debounced": fileBare, // the key is the id, so that the last task replaces the others
	"grouped":   groupBare,
	"Python":    pushVariadic,
}

// enqueueAs enqueues what bareForms write.
func (c *ceilingQueue) enqueueAs(form string, i int64, text string) error {
	key, due := "", tomorrow.UnixMilli()+i
	switch form {
	case "scheduled":
		key = "0123456789abc-" + strconv.FormatInt(1e9+i, 10) // as long as the ids of delayed
	case "unique", "keyed":
		key = "key " + strconv.FormatInt(i, 10)
	case "debounced":
		key, due = "key "+strconv.FormatInt(i%debounceKeys, 10), time.Now().Add(time.Hour).UnixMilli()
	case "grouped":
		key = "group " + strconv.FormatInt(i%groupKeys, 10)
	}
	co, err := c.form(form)
	if err != nil {
		return err
	}
	return co.enqueue(encodeBare(i, text), key, due)
}

// form returns the coalescer of a form, which it opens at its first use.
func (c *ceilingQueue) form(name string) (*coalescer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forms[name] != nil {
		return c.forms[name], nil
	}
	send := bareForms[name]
	if send == nil {
		return nil, errNone
	}
	co, err := c.coalescer(send)
	if err == nil {
		c.forms[name] = co
	}
	return co, err
}

// fileBare writes tasks that wait until they are due.
func fileBare(conn redis.Conn, pile []*bareRequest) error {
	tasks, dues := make([]any, 1, 2*len(pile)+1), make([]any, 1, 2*len(pile)+1)
	tasks[0], dues[0] = bareTasks, bareDues
	for _, r := range pile {
		tasks, dues = append(tasks, r.key, r.task), append(dues, r.score, r.key)
	}
	if err := conn.Send("HSET", tasks...); err != nil {
		return err
	}
	_, err := conn.Do("ZADD", dues...)
	return err
}

// lockScript takes a lock for each task and enqueues those whose lock was free.
var lockScript = redis.NewScript(3, `local locks, tasks, ones = {}, {}, {}
for i = 1, #ARGV, 2 do locks[#locks + 1] = ARGV[i] end
local held = redis.call('HMGET', KEYS[1], unpack(locks))
local taken = {}
for i = 1, #locks do
  if not held[i] then
    taken[#taken + 1], taken[#taken + 2] = locks[i], '1'
    tasks[#tasks + 1], ones[#ones + 1] = ARGV[2 * i], '1'
  end
end
redis.call('HSET', KEYS[1], unpack(taken))
redis.call('RPUSH', KEYS[2], unpack(tasks))
redis.call('RPUSH', KEYS[3], unpack(ones))
return #tasks`)

// lockBare enqueues tasks whose locks are free.
func lockBare(conn redis.Conn, pile []*bareRequest) error {
	args := []any{bareLocks, ceilingList, ceilingNotify}
	for _, r := range pile {
		args = append(args, r.key, r.task)
	}
	_, err := lockScript.Do(conn, args...)
	return err
}

// groupBare adds tasks to their groups.
func groupBare(conn redis.Conn, pile []*bareRequest) error {
	calls := map[string][]any{}
	for _, r := range pile {
		if calls[r.key] == nil {
			calls[r.key] = []any{bareGroups + ":" + r.key}
		}
		calls[r.key] = append(calls[r.key], r.task)
	}
	dues := []any{bareGroups}
	for key, args := range calls {
		dues = append(dues, time.Now().UnixMilli(), key)
		if err := conn.Send("RPUSH", args...); err != nil {
			return err
		}
	}
	_, err := conn.Do("ZADD", dues...)
	return err
}
