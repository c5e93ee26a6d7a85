package redisstore

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQueueNames(t *testing.T) {
	for _, name := range []string{
		"mail", "m", "mail.v2", "mail-v2", "mail_v2", "mail:v2", "app:{mail}", "{a}{b}", "mail/high", "письма", "邮件",
		strings.Repeat("q", maxQueueName),
		// Names that only look like keys.
		"_notify", "noti", "jobs_noti_", "jobs_Retry", "jobsretry", "jobs_worker", "worker:1", "jobs_statsx",
	} {
		if err := CheckQueueName(name); err != nil {
			t.Errorf("%q: %v, expected it to be accepted", name, err)
		}
	}
	for _, c := range []struct{ name, want string }{
		{"", "empty"},
		{strings.Repeat("q", maxQueueName+1), "129 bytes: expected at most 128"},
		{"two words", "printable"},
		{"tab\there", "printable"},
		{"line\n", "printable"},
		{"nul\x00", "printable"},
		{"del\x7f", "printable"},
		{"not utf-8 \xff", "printable"},
		{"half\xc3", "printable"},
		{"jobs_retry", `ends in "_retry", which is a key of queue "jobs"`},
		{"_noti", `ends in "_noti", which is a key of queue ""`},
		{"a_processing:b", `contains "_processing:"`},
		{"jobs_stats:20250102", `contains "_stats:"`},
	} {
		err := CheckQueueName(c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "delayed: queue name") {
			t.Errorf("%q: %v, expected a message with %s", c.name, err, c.want)
		}
	}
	for _, s := range slices.Concat(keySuffixes, keyInfixes) {
		if CheckQueueName("jobs"+s) == nil {
			t.Errorf("jobs%s: expected it to be refused", s)
		}
	}
}

// TestKeysOfQueuesDiffer compares the keys of queues with similar names: no accepted name gives a key of another queue.
func TestKeysOfQueuesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"jobs", "jobs_", "_jobs", "jobs_x", "jobs:", "jobs:x", "jobs_worker", "jobs_claims",
		"jobs_stats", "jobs_processingx",
	} {
		if err := CheckQueueName(name); err != nil {
			t.Fatal(err)
		}
		keys := newQueueKeys("", name)
		fields := reflect.ValueOf(keys)
		for i := range fields.NumField() {
			key := fields.Field(i).String()
			if strings.HasSuffix(key, ":") && key != name {
				key += "x" // a worker's id or a day
			}
			if other, ok := seen[key]; ok {
				t.Errorf("key %q belongs to queues %q and %q", key, other, name)
			}
			seen[key] = name
		}
	}
}

func TestKeys(t *testing.T) {
	keys := newQueueKeys("app:", "mail")
	for _, c := range []struct{ got, want string }{
		{keys.list, "app:mail"},
		{keys.noti, "app:mail_noti"},
		{keys.processing, "app:mail_processing:"},
		{keys.statsOf(time.Date(2025, 1, 2, 23, 59, 59, 0, time.FixedZone("", -3600))), "app:mail_stats:20250103"},
		{keys.statsOf(time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)), "app:mail_stats:20250102"},
	} {
		if c.got != c.want {
			t.Errorf("found %q, expected %q", c.got, c.want)
		}
	}
}
