package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxQueueName bounds a queue's name, in bytes.
const maxQueueName = 128

// The keys that all queues share whose handles have one prefix; they stand behind it.
const (
	registryName = "delayed_queues"
	auditName    = "delayed_audit"
	// semaphoreInfix is what the key of a semaphore begins with; its name follows.
	semaphoreInfix = "delayed_semaphore:"
)

var sharedKeys = []string{registryName, auditName}

// keySuffixes are what the keys of a queue add to its name, and keyInfixes what stands between it and a variable part.
// No queue's name may end in the first or contain the others: it would share keys with another queue.
var keySuffixes, keyInfixes = keyParts()

func keyParts() (suffixes, infixes []string) {
	all := reflect.ValueOf(newQueueKeys("", ""))
	for i := range all.NumField() {
		switch part := all.Field(i).String(); {
		case part == "": // the pending list
		case strings.HasSuffix(part, ":"):
			infixes = append(infixes, part)
		default:
			suffixes = append(suffixes, part)
		}
	}
	return suffixes, append(infixes, semaphoreInfix)
}

// keys are the Redis keys of one queue. lua/README.md says what each holds, who writes it and who deletes it.
type keys struct {
	list, noti, wake                     string
	legacy, workers                      string
	scheduled, retry, archived, parked   string
	tasks, info, deaths, sweeper, mode   string
	completed, results                   string
	locks, revoked, control              string
	functions                            string
	periodic, ticks, history             string // behind history follows the name of an entry
	processing, claims, heartbeat, stats string // a worker's id or a day follows
	groups, gathered                     string
	group                                string // a group follows
	suspects, suspectsNoti               string // as list and noti, for tasks that run with few others or alone
	rewait                               string // a worker's id follows
	metrics                              string // a grain and a time follow
}

// newQueueKeys returns the keys of a queue.
func newQueueKeys(prefix, name string) keys {
	n := prefix + name
	return keys{
		list: n, noti: n + "_noti", wake: n + "_wake",
		legacy: n + "_processing", workers: n + "_workers",
		scheduled: n + "_scheduled", retry: n + "_retry", archived: n + "_archived", parked: n + "_parked",
		tasks: n + "_tasks", info: n + "_info", deaths: n + "_deaths", sweeper: n + "_sweeper", mode: n + "_mode",
		completed: n + "_completed", results: n + "_results", locks: n + "_locks",
		revoked: n + "_revoked", control: n + "_control", functions: n + "_functions",
		suspects: n + "_suspects", suspectsNoti: n + "_suspects_noti", rewait: n + "_rewait:",
		groups: n + "_groups", gathered: n + "_gathered", group: n + "_group:",
		periodic: n + "_periodic", ticks: n + "_ticks", history: n + "_history:",
		processing: n + "_processing:", claims: n + "_claims:", heartbeat: n + "_worker:", stats: n + "_stats:",
		metrics: n + "_metrics:",
	}
}

// statsOf returns the counter hash of the UTC day of t.
func (k *keys) statsOf(t time.Time) string { return k.stats + t.UTC().Format("20060102") }

// signals is the channel on which workers of the queue learn of changes. Channels are not keys: all databases of a
// server share them.
func (k *keys) signals() string { return k.list + "_signals" }

// watch is the channel on which workers of the queue are asked to publish events, and events is the one on which they
// do.
func (k *keys) watch() string  { return k.list + "_watch" }
func (k *keys) events() string { return k.list + "_events" }

// endedOf returns the channel on which the end of a task is published. It is no key.
func (k *keys) endedOf(id string) string { return k.list + "_ended:" + id }

// OneSlot reports whether one script may use all keys of a queue.
func OneSlot(src Source, prefix, name string) bool {
	k := newQueueKeys(prefix, name)
	slot := src.Slot(k.list)
	for _, key := range []string{k.noti, k.wake, k.workers} {
		if src.Slot(key) != slot {
			return false
		}
	}
	return true
}

// CheckQueueName returns an error if a queue cannot have that name.
func CheckQueueName(name string) error {
	switch {
	case name == "":
		return errors.New("delayed: queue name is empty")
	case len(name) > maxQueueName:
		return fmt.Errorf("delayed: queue name of %d bytes: expected at most %d", len(name), maxQueueName)
	}
	for _, r := range name {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError {
			return fmt.Errorf("delayed: queue name %q: expected printable characters without spaces", name)
		}
	}
	for _, s := range sharedKeys {
		if strings.HasSuffix(name, s) {
			return fmt.Errorf("delayed: queue name %q ends in %q, which is a key that all queues share: choose "+
				"another name", name, s)
		}
	}
	for _, s := range keySuffixes {
		if other, ok := strings.CutSuffix(name, s); ok {
			return fmt.Errorf("delayed: queue name %q ends in %q, which is a key of queue %q: choose another name",
				name, s, other)
		}
	}
	for _, s := range keyInfixes {
		if strings.Contains(name, s) {
			return fmt.Errorf("delayed: queue name %q contains %q, which marks keys of another queue: choose another "+
				"name", name, s)
		}
	}
	return nil
}
