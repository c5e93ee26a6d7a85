package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River 0.44.1 is the last that Go 1.25 builds. Measured in turns with 0.51.0 (4,000 tasks, medians of 3), neither
// enqueueing nor draining differed by more than their ranges.
func init() {
	const store = "PostgreSQL with its default settings for always, synchronous_commit=off for everysec, fsync=off " +
		"as well for off; " +
		"20 connections"
	registerRiver(&peer{
		name:  "river",
		about: "default settings, which fetch every 100 ms at most; " + store,
		share: 0.02,
	}, false)
	registerRiver(&peer{
		name: "river-tuned",
		about: "FetchCooldown 2 ms, FetchPollInterval 20 ms and MaxWorkers 2,000, as in its own benchmark; " +
			store,
		share:       0.2,
		concurrency: 2000,
	}, true)
}

func registerRiver(p *peer, tuned bool) {
	p.start = startRiver
	p.version = func() (string, error) {
		version, err := moduleVersion("github.com/riverqueue/river")
		if err != nil {
			return "", err
		}
		server, err := postgresVersion()
		return fmt.Sprintf("%s on PostgreSQL %s", version, server), err
	}
	p.open = func(addr string) (queue, error) { return openRiver(addr, tuned) }
	register(p)
}

// riverConnections lets 16 producers insert at once; pgx's default is one connection for each core, at least four.
const riverConnections = 20

func riverPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = riverConnections
	return pgxpool.NewWithConfig(ctx, config)
}

// startRiver starts a PostgreSQL server with river's tables in it.
func startRiver(aof string) (*server, error) {
	s, err := startPostgres(aof)
	if err != nil {
		return nil, err
	}
	if err := migrateRiver(s.addr); err != nil {
		log := postgresLog(s)
		s.stop()
		return nil, fmt.Errorf("making river's tables: %w; PostgreSQL says:\n%s", err, log)
	}
	return s, nil
}

func migrateRiver(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	pool, err := riverPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	for err = pool.Ping(ctx); err != nil; err = pool.Ping(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server did not answer within 20 s: %w", err)
		case <-time.After(10 * time.Millisecond): // the server is starting
		}
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

type riverQueue struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // inserts only
	tuned  bool
}

// riverTask is the task's arguments; river encodes them as JSON.
type riverTask struct {
	A int64  `json:"a"`
	B string `json:"b"`
}

// Kind names the task.
func (riverTask) Kind() string { return "task" }

type riverWorker struct {
	river.WorkerDefaults[riverTask]
	handle func(number int64, text string)
}

// Work runs a task.
func (w *riverWorker) Work(_ context.Context, j *river.Job[riverTask]) error {
	w.handle(j.Args.A, j.Args.B)
	return nil
}

func openRiver(url string, tuned bool) (queue, error) {
	pool, err := riverPool(context.Background(), url)
	if err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: riverLogger()})
	if err != nil {
		return nil, err
	}
	return &riverQueue{pool, client, tuned}, nil
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

func (q *riverQueue) work(concurrency int, handle func(int64, string)) (func(), error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handle: handle})
	config := &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers: workers,
		Logger:  riverLogger(),
	}
	if q.tuned {
		config.FetchCooldown, config.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	}
	client, err := river.NewClient(riverpgxv5.New(q.pool), config)
	if err != nil {
		return nil, err
	}
	return func() { _ = client.Stop(context.Background()) }, client.Start(context.Background())
}

func (q *riverQueue) close() { q.pool.Close() }
