//go:build cgroups

package isolate

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/loop"
)

// unit is the group of a service, in which this process is the only one.
const unit = groupsMount + "/unit"

// TestGroups bounds the memory of children together with what they start. It runs as root on a system with cgroup v2
// only, such as that of scripts/cgroups.sh, and starts itself once for each way in which a group is delegated.
func TestGroups(t *testing.T) {
	for layout, make := range map[string]func(){
		"own":   func() { enter(t, unit); mark(t, unit) },
		"above": func() { enter(t, unit+"/main"); mark(t, unit) },
		"none":  func() { enter(t, unit) },
		"busy":  func() { enter(t, unit); mark(t, unit); beside(t) },
	} {
		if chosen := os.Getenv("LAYOUT"); chosen == "" {
			t.Run(layout, func(t *testing.T) {
				cmd := exec.Command(os.Args[0], "-test.run=^TestGroups$", "-test.v")
				cmd.Env = append(os.Environ(), "LAYOUT="+layout)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				removeUnit(t)
			})
		} else if chosen == layout {
			make()
			tryGroups(t, layout)
		}
	}
}

func tryGroups(t *testing.T, layout string) {
	t.Helper()
	var complaints bytes.Buffer
	p := newPool(t, func(c *Config) {
		log := logrus.New()
		log.SetOutput(&complaints)
		c.Limits.Memory, c.Log = 64<<20, loop.NewJournal(log)
	})
	grouped := layout == "own" || layout == "above"
	if grouped { // of a process that was killed
		if err := os.Mkdir(unit+"/"+groupName+"4000000-1", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	first := run(t, p, "pid")
	if n := len(groupsOfChildren(t)); grouped != (n == 1) {
		t.Errorf("%d groups of children: %q", n, groupsOfChildren(t))
	}
	if told := complaints.String(); strings.Contains(told, "not for what they start") != (layout == "busy") {
		t.Errorf("logged: %s", told)
	}
	if !grouped {
		return
	}
	pid, err := strconv.Atoi(run(t, p, "leave"))
	if err != nil || !alive(pid) {
		t.Fatalf("process %d, %v", pid, err)
	}
	if d := dies(t, p, "hoard"); !strings.Contains(d.Error(), "used more memory than Isolation.Memory allows") {
		t.Errorf("found %v", d)
	}
	if alive(pid) {
		t.Errorf("process %d goes on, which a child has started that is dead", pid)
	}
	if second := run(t, p, "pid"); second == first {
		t.Errorf("process %s ran two jobs", first)
	}
	if d := dies(t, p, "exit"); strings.Contains(d.Error(), "memory") {
		t.Errorf("found %v", d)
	}
	p.Close()
	if left := groupsOfChildren(t); len(left) > 0 {
		t.Errorf("groups are left: %q", left)
	}
}

func groupsOfChildren(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(unit + "/" + groupName + "*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// enter moves this process into a new group.
func enter(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := group(dir).set("cgroup.procs", "0"); err != nil {
		t.Fatal(err)
	}
}

// mark marks a group as delegated, as systemd does.
func mark(t *testing.T, dir string) {
	t.Helper()
	if err := group(groupsMount).set("cgroup.subtree_control", "+memory"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}

// beside starts another process in the group of this one.
func beside(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// removeUnit removes the group and all that is in it.
func removeUnit(t *testing.T) {
	t.Helper()
	_ = group(unit).set("cgroup.kill", "1")
	until(t, "the group is empty", func() bool {
		below, _ := filepath.Glob(unit + "/*/cgroup.procs")
		for _, file := range below {
			_ = syscall.Rmdir(filepath.Dir(file))
		}
		return syscall.Rmdir(unit) == nil
	})
}
