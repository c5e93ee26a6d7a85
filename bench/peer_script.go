package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The peers that are not Go packages. Their drivers are in drivers/, and what these need is in .peers/, where
// scripts/setup-peers.sh puts it.
func init() {
	registerScript(&peer{
		name:  "bullmq",
		about: "finished jobs are removed (its default keeps all)",
		share: 0.5,
	}, "node", "drivers/bullmq.mjs")
	registerScript(&peer{
		name: "celery",
		about: "acknowledges late; prefork pool of 2; no results, gossip, mingle and heartbeat; handler calls " +
			"are counted across processes by two system calls each",
		share:       0.05,
		concurrency: 2,
	}, pythonOfPeers, "drivers/drive.py", "celery")
	registerScript(&peer{
		name:        "celery-defaults",
		about:       "as celery, but acknowledges before a task runs, so that a crash loses it",
		share:       0.05,
		concurrency: 2,
	}, pythonOfPeers, "drivers/drive.py", "celery-defaults")
	registerScript(&peer{
		name: "dramatiq",
		about: "2 processes of 8 threads, its command line's default on 2 cores; an idle worker looks for " +
			"tasks ever more rarely, down to once a second; handler calls are counted as those of celery",
		share:       0.1,
		concurrency: 16,
		polls:       true,
	}, pythonOfPeers, "drivers/drive.py", "dramatiq")
	registerScript(&peer{
		name:        "rq",
		about:       "SimpleWorker, one task at a time (its default worker forks for each task); no results",
		share:       0.02,
		concurrency: 1,
	}, pythonOfPeers, "drivers/drive.py", "rq")
}

// Relative to the folder of this file, in which bench runs.
const (
	peersDir      = ".peers"
	pythonOfPeers = peersDir + "/venv/bin/python"
)

// registerScript registers the peer that script returns.
func registerScript(p *peer, interpreter, path string, args ...string) {
	register(script(p, interpreter, path, args...))
}

// script completes p. Its driver starts as interpreter, script and further arguments, with the address after them; with
// --version between script and arguments it prints its peer's version.
func script(p *peer, interpreter, script string, args ...string) *peer {
	p.version = func() (string, error) {
		line, err := scriptLine(interpreter, script)
		if err != nil {
			return "", err
		}
		return versionOf(append(append(line, "--version"), args...)...)
	}
	p.driver = func() ([]string, error) {
		line, err := scriptLine(interpreter, script)
		return append(line, args...), err
	}
	return p
}

func scriptLine(interpreter, script string) ([]string, error) {
	script, err := fileOfBench(script)
	if err != nil {
		return nil, err
	}
	if filepath.Base(interpreter) != interpreter {
		interpreter, err = fileOfBench(interpreter)
	} else if interpreter, err = exec.LookPath(interpreter); err != nil {
		err = notSetUp(err)
	}
	return []string{interpreter, script}, err
}

// fileOfBench returns the absolute path of a file in the folder of this program's source.
func fileOfBench(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	_, err = os.Stat(path)
	switch {
	case err == nil:
		return path, nil
	case strings.Contains(path, "/"+peersDir+"/"):
		return "", notSetUp(err)
	case strings.Contains(path, "/.venv/"):
		return "", fmt.Errorf("`make setup` installs it: %w", err)
	default:
		return "", fmt.Errorf("expected to be run in the folder bench: %w", err)
	}
}

func notSetUp(err error) error { return fmt.Errorf("`make bench-peers-setup` installs it: %w", err) }

// versionOf returns the output of a command.
func versionOf(line ...string) (string, error) {
	out, err := exec.Command(line[0], line[1:]...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		why := bytes.TrimSpace(failed.Stderr)
		return "", notSetUp(fmt.Errorf("%w: %s", err, why[bytes.LastIndexByte(why, '\n')+1:]))
	} else if err != nil {
		return "", notSetUp(err)
	}
	return string(bytes.TrimSpace(out)), nil
}
