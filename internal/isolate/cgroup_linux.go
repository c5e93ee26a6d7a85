package isolate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// groups is a control group (cgroup v2) that was delegated to this process. Each child with a limit of memory gets a
// group of its own in it, so that the limit also holds for what the child starts. nil: none was delegated.
type groups struct {
	dir  string
	made atomic.Uint64
}

const (
	groupsMount = "/sys/fs/cgroup"
	// groupName begins the names of the children's groups. Then come the parent's process and a number.
	groupName = "delayed-child-"
	// groupOfWorker is where a process moves that is in the delegated group itself: only a group without processes can
	// have groups with limits.
	groupOfWorker = "delayed-worker"
)

// delegatedGroups returns the groups of this process. An error reports why it cannot use those that were delegated to
// it.
var delegatedGroups = sync.OnceValues(func() (*groups, error) {
	own, _ := os.ReadFile("/proc/self/cgroup") // missing on a system without control groups
	return findGroups(groupsMount, string(own))
})

// findGroups looks for a delegated group: that of this process, of which text is /proc/self/cgroup, or the one above.
func findGroups(mount, text string) (*groups, error) {
	_, own, found := strings.Cut("\n"+text, "\n0::")
	own, _, _ = strings.Cut(own, "\n")
	if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); !found || err != nil {
		return nil, nil //nolint:nilerr // version 1, or none
	}
	dir := filepath.Join(mount, own)
	switch {
	case delegated(dir):
		worker := filepath.Join(dir, groupOfWorker)
		if err := os.Mkdir(worker, 0o750); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // see group.set
			return nil, err
		}
		if err := group(worker).set("cgroup.procs", "0"); err != nil {
			return nil, err
		}
	case dir != mount && delegated(filepath.Dir(dir)):
		dir = filepath.Dir(dir)
	default:
		return nil, nil
	}
	if err := group(dir).set("cgroup.subtree_control", "+memory"); err != nil {
		return nil, fmt.Errorf("%w; expected no process in %s itself, and memory in its cgroup.controllers", err, dir)
	}
	removeOld(dir)
	return &groups{dir: dir}, nil
}

// delegated reports whether a group is marked as systemd marks those of units with Delegate=: only then may a process
// make groups in it (https://systemd.io/CGROUP_DELEGATION). Only root can read trusted.delegate; user.delegate is there
// since systemd 251, according to its NEWS.
func delegated(dir string) bool {
	var b [1]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := syscall.Getxattr(dir, name, b[:]); err == nil && n == 1 && b[0] == '1' {
			return true
		}
	}
	return false
}

// removeOld removes the groups of processes that have died without removing them.
func removeOld(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, groupName+"*"))
	for _, path := range old {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupName), "-")
		if pid, err := strconv.Atoi(text); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = syscall.Rmdir(path) // another process may have been faster
		}
	}
}

// group is the directory of a child's control group. Its methods do nothing if it is "".
type group string

// open makes a group.
func (g *groups) open() (group, error) {
	dir := filepath.Join(g.dir, fmt.Sprint(groupName, os.Getpid(), "-", g.made.Add(1)))
	if err := os.Mkdir(dir, 0o750); err != nil {
		return "", err
	}
	return group(dir), nil
}

// add moves a process into the group.
func (g group) add(pid int) error {
	if g == "" {
		return nil
	}
	return g.set("cgroup.procs", strconv.Itoa(pid))
}

// bound lets the processes of the group use so many more bytes than they do now. With one more, all of them are killed.
func (g group) bound(more int64) error {
	if g == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(string(g), "memory.current"))
	if err != nil {
		return err
	}
	now, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return err
	}
	_ = g.set("memory.swap.max", "0") // missing where there is no swap
	return errors.Join(g.set("memory.oom.group", "1"), g.set("memory.max", strconv.FormatInt(now+more, 10)))
}

// close kills what is left in the group, removes it, and reports whether it was killed for its memory.
func (g group) close() (outOfMemory bool) {
	if g == "" {
		return false
	}
	b, err := os.ReadFile(filepath.Join(string(g), "memory.events"))
	if _, kills, ok := strings.Cut(string(b), "oom_kill "); ok && err == nil {
		outOfMemory = kills[0] != '0'
	}
	_ = g.set("cgroup.kill", "1") // since Linux 5.14; before that, what has left the process group lives on
	for end := time.Now().Add(exitLimit); ; <-time.After(10 * time.Millisecond) {
		if syscall.Rmdir(string(g)) == nil || time.Now().After(end) {
			return outOfMemory // removeOld of a later process removes it
		}
	}
}

// set writes a file of the group.
func (g group) set(name, value string) error {
	f, err := os.OpenFile(filepath.Join(string(g), name), os.O_WRONLY, 0) //nolint:gosec // the system names the group
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// newGroup returns a group for a child, "" if it needs none or there are none.
func newGroup(limits Limits) (group, error) {
	if limits.Memory == 0 {
		return "", nil
	}
	all, err := delegatedGroups()
	if all == nil {
		return "", err
	}
	return all.open()
}
