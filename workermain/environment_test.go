//go:build unix

package workermain

import (
	"strings"
	"syscall"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestEnvironment(t *testing.T) {
	for _, test := range []struct{ variable, want string }{
		{"DELAYED_CONCURENCY=5", "unknown environment variable DELAYED_CONCURENCY: did you mean DELAYED_CONCURRENCY?"},
		{"DELAYED_QUEUE=mail", "did you mean DELAYED_QUEUES?"},
		{"DELAYED_REDIS_URL=redis://user:hunter2@a", "did you mean DELAYED_REDIS?"},
		{"DELAYED_LOGLEVEL=debug", "did you mean DELAYED_LOG_LEVEL?"},
		{"DELAYED_=x", "unknown environment variable DELAYED_:"},
		{"DELAYED_VERSION=1", "unknown environment variable DELAYED_VERSION"},
		{"DELAYED_FUNCTIONS=true", "unknown environment variable DELAYED_FUNCTIONS"},
		{"DELAYED_PORTS=1", "unknown environment variable DELAYED_PORTS"},
		{"DELAYED_CONCURENCY=", ""},
		{"DELAYED_CONCURRENCY=5", ""},
		{"REDIS_URL=redis://a", ""},
		{"DELAYEDX=1", ""},
		{"delayed_concurency=5", ""},
		{"DELAYED_SERVICE_HOST=10.0.0.1", ""},
		{"DELAYED_SERVICE_PORT=80", ""},
		{"DELAYED_SERVICE_PORT_HTTP=80", ""},
		{"DELAYED_PORT=tcp://10.0.0.1:80", ""},
		{"DELAYED_PORT_80_TCP=tcp://10.0.0.1:80", ""},
		{"DELAYED_WORKER_PORT_80_TCP_ADDR=10.0.0.1", ""},
	} {
		err := newSettings(Config{}).checkEnvironment([]string{"PATH=/bin", test.variable, "HOME=/"})
		if (err == nil) != (test.want == "") || err != nil &&
			(!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: found %v, expected %q", test.variable, err, test.want)
		}
	}
}

func TestUnknownVariablesOfAProgram(t *testing.T) {
	_, flags := newQueue(t)
	cmd := command("main", flags...)
	cmd.Env = append(cmd.Env, "DELAYED_QUEUS=mail", "DELAYED_GRASE=1s")
	c := launch(t, cmd)
	c.ends(exitUsage)
	c.sees("DELAYED_GRASE: did you mean DELAYED_GRACE")
	c.sees("DELAYED_QUEUS: did you mean DELAYED_QUEUES")
}

// TestPrefixFlag: the flag holds against what Dial says.
func TestPrefixFlag(t *testing.T) {
	for _, program := range []string{"main", "prefix"} {
		q, flags := newQueue(t)
		rdb, err := delayed.Dial(redistest.Shared(t).URL())
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		c := launch(t, command(program, append(flags, "-prefix", "app:")...))
		c.sees("worker started.* prefix=\"app:\"")
		delay(t, delayed.NewQueue(q.Name(), rdb.WithPrefix("app:")), say, "behind a prefix")
		c.sees("said behind a prefix")
		c.sends(syscall.SIGTERM)
		c.ends(exitClean)
	}
}

func TestSettingsOfRedis(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	flags := []string{
		"-redis", strings.Replace(server.URL(), "redis://", "redis://default:hunter2@", 1), "-queues",
		"mail=3,news=1",
	}
	server.Do(t, "ACL", "SETUSER", "default", ">hunter2")
	c := launch(t, command("main", flags...))
	c.ends(exitFailed)
	c.sees(`worker does not start.*maxmemory-policy allkeys-lru`)
	c = launch(t, command("main", append(flags, "-allow", "replica, eviction")...))
	c.sees(`level=warning.*maxmemory-policy allkeys-lru`)
	c.sees(`worker started.*functions="\[\S+say \S+hold \S+obey]"` +
		`|worker started.*functions="\[\S+hold \S+obey \S+say]"`)
	c.sees(`worker started.*queues="mail=3, news=1 \(weighted\)".*redis="` + server.Addr() + `".*version=`)
	c.sees(`knows of no task of several queues.*queues="\[mail news\]"`)
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	if strings.Contains(c.Output(), "hunter2") {
		t.Errorf("the log shows a password:\n%s", c.Output())
	}
	c = launch(t, command("main", append(flags, "-allow", "evictions")...))
	c.ends(exitUsage)
	c.sees(`unknown name "evictions" of a setting: expected eviction, replica, scripts, version`)
}
