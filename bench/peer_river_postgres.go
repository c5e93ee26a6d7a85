package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// postgresBinary finds a program of the PostgreSQL server: on the PATH, or where Debian keeps those of each version.
func postgresBinary(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return filepath.Abs(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", notSetUp(err)
	}
	return slices.MaxFunc(found, func(a, b string) int { return postgresMajor(a) - postgresMajor(b) }), nil
}

func postgresMajor(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

func postgresVersion() (string, error) {
	path, err := postgresBinary("postgres")
	if err != nil {
		return "", err
	}
	out, err := versionOf(path, "--version") // postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
	version, _, _ := strings.Cut(strings.TrimPrefix(out, "postgres (PostgreSQL) "), " ")
	return version, err
}

// clusterScript makes a cluster, runs its server until stdin ends, and removes everything. That works also when bench
// is killed, because the system closes the pipe then. The data is not needed any more, so the server stops at once.
const clusterScript = `
dir=$1 initdb=$2 postgres=$3
shift 3
"$initdb" -D "$dir/data" -U postgres --auth=trust --no-sync >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
"$postgres" -D "$dir/data" "$@" </dev/null >"$dir/log" 2>&1 &
server=$!
echo started
read -r _
kill -QUIT "$server"
wait "$server"
cd /
rm -rf "$dir" 2>/dev/null
`

// startPostgres starts a PostgreSQL server with a cluster of its own on a free port; it may not answer yet. Its files
// are where those of startServer are. For always a commit returns when it is on disk, which is the server's default;
// for everysec it is there within a second (synchronous_commit=off); for off nothing is synced.
func startPostgres(aof string) (*server, error) {
	initdb, err := postgresBinary("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := postgresBinary("postgres")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	base := os.Getenv("BENCH_DIR")
	if base == "" && os.Getuid() == 0 {
		// the user postgres must reach it, and the usual folder for temporary files may be root's alone
		base = "/var/tmp"
	}
	dir, err := os.MkdirTemp(base, "bench")
	if err != nil {
		return nil, err
	}
	args := []string{
		"-c", clusterScript, "sh", dir, initdb, postgres, "-p", port, "-h", "127.0.0.1", "-c",
		"unix_socket_directories=",
	}
	switch aof {
	case aofOff:
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off")
	case aofEverysec:
		args = append(args, "-c", "synchronous_commit=off")
	case aofAlways:
	default:
		return nil, errDurability(aof)
	}
	s := &server{
		cmd:  exec.Command("/bin/sh", args...),
		addr: "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable",
		dir:  dir,
	}
	s.cmd.Dir = dir
	s.cmd.Stderr = os.Stderr
	// The server has its own process group: an interrupt from the terminal goes only to bench, which then stops the
	// server.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := asPostgres(s.cmd, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.halt = func() { in.Close() }
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		s.stop()
		return nil, fmt.Errorf("initdb failed: %w; its message is above", err)
	}
	return s, nil
}

// postgresLog returns what the server has written, for an error message.
func postgresLog(s *server) []byte {
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return log
}

// asPostgres makes cmd run as the user postgres, who becomes the owner of dir, if this process runs as root: the server
// refuses to run as root.
func asPostgres(cmd *exec.Cmd, dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(dir, int(uid), int(gid))
}
