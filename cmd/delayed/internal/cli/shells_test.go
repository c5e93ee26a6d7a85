package cli_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// TestShells lets real shells complete words, with Tab in a terminal.
func TestShells(t *testing.T) {
	t.Parallel()
	library := cmp.Or(os.Getenv("BASH_COMPLETION"), "/usr/share/bash-completion/bash_completion")
	for _, c := range []struct {
		shell []string
		setup string
	}{
		{bash, "source " + library + "; source <(delayed completion bash)"},
		{[]string{"zsh", "-f"}, "autoload -Uz compinit; compinit -u -D; source <(delayed completion zsh)"},
		{[]string{"fish", "--no-config"}, "set -g fish_autosuggestion_enabled 0; delayed completion fish | source"},
	} {
		t.Run(c.shell[0], func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.shell[0]); err != nil {
				t.Fatalf("%s is missing: make setup installs it (%v)", c.shell[0], err)
			}
			b := newBench(t)
			b.work(welcome)
			later := b.q.With(delayed.In(time.Hour))
			_, err := later.With(delayed.TaskID("unlikely-7")).Delay(welcome, 1, "en")
			b.Must(err)
			_, err = later.With(delayed.TaskID(hostile)).Delay(welcome, 1, "en") // no shell gets that
			b.Must(err)
			x := newTerminal(t, b, c.shell...)
			config := filepath.Join(x.dir, ".config", "delayed")
			b.Must(os.MkdirAll(config, 0o700))
			b.Must(os.WriteFile(filepath.Join(config, "config.yaml"),
				[]byte("profiles: {shopping: {url: 'redis://localhost'}}"), 0o600))
			x.keys("clear; "+c.setup+"; echo rea''dy", "Enter")
			x.sees("ready")
			for _, w := range []struct{ begun, completed string }{
				{"delayed que", "delayed queues"},
				{"delayed pause ma", "delayed pause mail"},
				{"delayed enqueue cli_te", "delayed enqueue cli_test.welcome"},
				{"delayed task show unl", "delayed task show unlikely-7"},
				{"delayed retry ", "delayed retry unlikely-7"},
				{"delayed stats --queu", "delayed stats --queu"}, // there is no such flag
				{"delayed tasks --newest", "delayed tasks --newest-first"},
				{"delayed tasks mail --state sch", "delayed tasks mail --state scheduled"},
				{"delayed tail --kind timed", "delayed tail --kind timed"}, // nothing with a space
				{"delayed tail --kind arch", "delayed tail --kind archived"},
				{"delayed scale --print wan", "delayed scale --print wanted"},
				{"delayed --profile sho", "delayed --profile shopping"},
			} {
				x.completes(w.begun, w.completed)
			}
		})
	}
}

// completes waits until Tab makes a line of what somebody has begun to write.
func (x *terminal) completes(begun, completed string) {
	x.T.Helper()
	line := regexp.MustCompile(`(?m)` + regexp.QuoteMeta(begun) + `\S* ?=\s*$`)
	want := regexp.MustCompile(`(?m)` + regexp.QuoteMeta(completed) + ` ?=\s*$`)
	// A shell that has waited for a second proposes nothing: Redis may be slow.
	x.Until(begun+" becomes "+completed, func() bool {
		x.keys("C-u", "C-l")
		x.keys("-l", begun)
		x.keys("Tab", "=") // the shell reads that when it is done with Tab
		x.Until("the shell is done with Tab", func() bool { return line.MatchString(x.screen()) })
		return want.MatchString(x.screen())
	})
}
