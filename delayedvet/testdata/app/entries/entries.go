// Package entries declares periodic entries.
package entries

import (
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

var good = delayed.Entry{
	Name: "digest", Spec: "@daily", Task: delayed.Call(mail.Digest),
	Options: []delayed.Option{delayed.MaxRetry(1), delayed.Timeout(time.Minute)},
}

var bad = []delayed.Entry{
	{
		Name: "welcome", Spec: "@daily",
		Task: delayed.Call(mail.Welcome, "42", "en"), // want `argument 1: expected int64, found string`
	},
	{
		Name: "later", Spec: "@daily", Task: delayed.Call(mail.Digest),
		Options: []delayed.Option{delayed.In(time.Hour)}, // want `periodic entry: expected options that hold for every tick, found In: the entry says when its tasks run`
	},
	{
		Name: "unique", Spec: "@daily", Task: delayed.Call(mail.Digest),
		Options: []delayed.Option{delayed.MaxRetry(1), delayed.Unique(time.Hour)}, // want `found Unique: what keeps runs of an entry apart is its Overlap`
	},
	{
		Name: "once", Spec: "@daily",
		Task: delayed.Call(mail.Once), // want `periodic entry: expected a task without a lock, found one of example.com/app/mail.Digest`
	},
}
