//go:build unix

package workermain

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
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
		"malformed URL": {
			[]string{"-queues", "mail", "-redis", "redis://user:hunter2@local host:x"},
			"Redis URL",
		},
		"cluster": {[]string{"-queues", "mail", "-redis", "redis://user:hunter2@a,b"}, "rediscluster.Dial"},
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

// A program lists its functions without a queue and without Redis, those of Setup too.
func TestFunctionsOfAProgram(t *testing.T) {
	const here = "github.com/godelayed/delayed/workermain."
	for program, want := range map[string][]string{
		"main":  {here + "hold", here + "obey", here + "say"},
		"setup": {here + "(*speaker).Say"},
	} {
		c := launch(t, command(program, "-functions", "-redis", "redis://localhost:1"))
		if program == "setup" {
			c.sees("setting up")
			c.sends(syscall.SIGUSR1)
		}
		c.ends(exitClean)
		var listed struct {
			Functions []struct{ Path string }
		}
		_, out, _ := strings.Cut(c.Output(), "{")
		if err := json.Unmarshal([]byte("{"+out), &listed); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []string
		for _, f := range listed.Functions {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: expected %v, found %v", program, want, got)
		}
	}
	c := launch(t, command("bad setup", "-functions"))
	c.ends(exitFailed)
	c.sees("setting up: no database")
}
