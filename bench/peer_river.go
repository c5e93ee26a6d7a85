package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River 0.44.1 is the last that Go 1.25 builds. Measured in turns with 0.51.0 (4,000 tasks, medians of 3), neither
// enqueueing nor draining differed by more than their ranges. With its default settings, which fetch every 100 ms at
// most, it drains 500 tasks a second.
var riverPeer = &peer{
	name: "river",
	about: "FetchCooldown 2 ms, FetchPollInterval 20 ms and MaxWorkers 2,000, as in its own benchmark; 20 " +
		"connections; PostgreSQL with its default settings for always, synchronous_commit=off for everysec, " +
		"fsync=off as well for off",
	version:     riverVersion,
	start:       startPostgres,
	open:        openRiver,
	share:       0.2,
	concurrency: 2000,
}

func riverVersion() (string, error) {
	version, err := moduleVersion("github.com/riverqueue/river")
	if err != nil {
		return "", err
	}
	postgres, err := postgresBinary("postgres")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(postgres, "--version").Output() // postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
	if fields := strings.Fields(string(out)); len(fields) > 2 {
		version += " on PostgreSQL " + fields[2]
	}
	return version, err
}

// migrateRiver makes river's tables.
func migrateRiver(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: riverLogger()})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

type riverQueue struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // inserts only
}

// riverTask is the task's arguments; river encodes them as JSON.
type riverTask struct {
	A int64  `json:"a"`
	B string `json:"b"`
}

// Kind names the task.
func (riverTask) Kind() string { return "task" }

func openRiver(url string) (queue, error) {
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: riverLogger()})
	if err != nil {
		return nil, err
	}
	return &riverQueue{pool, client}, nil
}

func riverLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

func (q *riverQueue) enqueue(number int64, text string) error {
	_, err := q.client.Insert(context.Background(), riverTask{number, text}, nil)
	return err
}

func (q *riverQueue) enqueueMany(number int64, texts []string) error {
	params := make([]river.InsertManyParams, len(texts))
	for i, text := range texts {
		params[i].Args = riverTask{number, text}
	}
	_, err := q.client.InsertManyFast(context.Background(), params)
	return err
}

func (q *riverQueue) work(concurrency int, handle func(int64, string)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[riverTask]) error {
		handle(j.Args.A, j.Args.B)
		return nil
	}))
	config := &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers: workers,
		Logger:  riverLogger(),
		// as in river's own benchmark
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	}
	client, err := river.NewClient(riverpgxv5.New(q.pool), config)
	if err != nil {
		return err
	}
	return client.Start(context.Background())
}

// postgresBinary finds a program of the PostgreSQL server: on the PATH, or where Debian keeps those of each version.
func postgresBinary(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", fmt.Errorf("%s is missing; install it with `make bench-peers-setup`", name)
	}
	return found[len(found)-1], nil
}

// startPostgres starts a PostgreSQL server with river's tables. For always a commit returns when it is on disk, which
// is the server's default; for everysec it is there within a second (synchronous_commit=off); for off nothing is
// synced.
func startPostgres(aof string) (*server, error) {
	settings := map[string][]string{
		aofOff:      {"-c", "fsync=off", "-c", "synchronous_commit=off"},
		aofEverysec: {"-c", "synchronous_commit=off"},
		aofAlways:   {},
	}[aof]
	s, err := launch(aof, settings, func(port, dir string) (*exec.Cmd, string, error) {
		initdb, err := postgresBinary("initdb")
		if err != nil {
			return nil, "", err
		}
		postgres, err := postgresBinary("postgres")
		if err != nil {
			return nil, "", err
		}
		create := exec.Command(initdb, "-D", dir+"/data", "-U", "postgres", "--auth=trust", "--no-sync")
		if err := asPostgres(create, dir); err != nil {
			return nil, "", err
		}
		if out, err := create.CombinedOutput(); err != nil {
			return nil, "", fmt.Errorf("initdb: %w: %s", err, out)
		}
		cmd := exec.Command(postgres, append(settings, "-D", dir+"/data", "-p", port, "-h", "127.0.0.1", "-c",
			"unix_socket_directories=")...)
		url := "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable&pool_max_conns=20"
		return cmd, url, asPostgres(cmd, dir)
	}, migrateRiver)
	if err == nil {
		s.quit = true
	}
	return s, err
}

// asPostgres makes cmd run in dir as the user postgres, who becomes the owner of dir, if this process runs as root: the
// server refuses to run as root.
func asPostgres(cmd *exec.Cmd, dir string) error {
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{}
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
