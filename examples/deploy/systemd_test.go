package deploy

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const unitFile = "systemd/mail-worker.service"

// unit returns the settings of the unit's section Service, and the environment that it gives the worker.
func unit(t *testing.T) (service map[string]string, env settings) {
	t.Helper()
	service, env = map[string]string{}, settings{}
	section := ""
	for line := range strings.Lines(read(t, unitFile)) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case !ok || strings.HasPrefix(line, "#") || section != "[Service]":
		case key == "Environment":
			name, value, _ := strings.Cut(value, "=")
			env[name] = value
		default:
			service[key] = value
		}
	}
	return service, env
}

// TestUnit asks systemd whether it takes the unit. The program and the file of the environment are not on this machine,
// so others stand in for them.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze, which checks the unit, is not there: expected Linux with the package systemd, " +
			"which make setup installs")
	}
	verify := func(text string) (string, error) {
		file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
		return string(out), err
	}
	text := read(t, unitFile)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "/usr/local/bin/mail-worker", program, 1)
	if out, err := verify(text); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := verify(strings.Replace(text, "KillMode=mixed", "KillMood=mixed", 1)); err == nil && out == "" {
		t.Error("systemd-analyze finds nothing wrong with an unknown setting")
	}
}

// TestUnitLetsTheWorkerFinish: what the unit says about stopping and memory fits what it tells the worker.
func TestUnitLetsTheWorkerFinish(t *testing.T) {
	service, env := unit(t)
	stop, err := time.ParseDuration(service["TimeoutStopSec"])
	if err != nil || stop < env.stopping(t) {
		t.Errorf("TimeoutStopSec is %s (%v), expected at least %v", service["TimeoutStopSec"], err, env.stopping(t))
	}
	if service["KillSignal"] != "SIGTERM" || service["KillMode"] != "mixed" {
		t.Errorf("KillSignal %s, KillMode %s", service["KillSignal"], service["KillMode"])
	}
	if most := bytes(t, service["MemoryMax"]); env.maxMemory(t) > most*9/10 {
		t.Errorf("the worker ends at %s, which is too near to MemoryMax %s", env["DELAYED_MAX_MEMORY"],
			service["MemoryMax"])
	}
	if service["OOMPolicy"] != "continue" {
		t.Errorf("OOMPolicy %s: the worker stops when one of its child processes is killed", service["OOMPolicy"])
	}
	if service["RestartPreventExitStatus"] != "2" || service["Restart"] != "always" {
		t.Errorf("Restart %s except after %s", service["Restart"], service["RestartPreventExitStatus"])
	}
	withURL := maps.Clone(env)
	withURL["REDIS_URL"] = "redis://:secret@redis:6379/0" // of the file of the environment
	withURL.accepted(t)
}
