//go:build unix

package workermain

import (
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no queues":           {nil, "no queues"},
		"unknown flag":        {[]string{"-nonsense"}, "-nonsense"},
		"queue name":          {[]string{"-queues", "mail_retry"}, "mail_retry"},
		"concurrency and URL": {[]string{"-queues", "mail", "-concurrency", "9999999"}, "Concurrency is 9999999"},
		"URL":                 {[]string{"-queues", "mail", "-redis", "http://user:hunter2@localhost"}, "scheme"},
		"malformed URL":       {[]string{"-queues", "mail", "-redis", "redis://user:hunter2@local host:x"}, "Redis URL"},
		"cluster":             {[]string{"-queues", "mail", "-redis", "redis://user:hunter2@a,b"}, "rediscluster.Dial"},
	} {
		t.Run(name, func(t *testing.T) {
			c := launch(t, command("main", test.args...))
			c.ends(exitUsage)
			c.sees(test.want)
			c.sees("-help lists all flags")
			if strings.Contains(c.Output(), "hunter2") {
				t.Errorf("the message shows a password:\n%s", c.Output())
			}
		})
	}
}

func TestHelpOfAProgram(t *testing.T) {
	c := launch(t, command("own flags", "-help"))
	c.ends(exitClean)
	c.sees("(?s)Usage: .*-queues list.*-greeting say")
}

func TestVersionOfAProgram(t *testing.T) {
	c := launch(t, command("main", "-version"))
	c.ends(exitClean)
	c.sees(`delayed .*go1\.`)
}
