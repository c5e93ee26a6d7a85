package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func init() {
	const about = "explicit acknowledgements, which the server does not confirm; pulls of 1,000; a batch is 1,000 " +
		"asynchronous publications and the wait for all their confirmations; a work queue on one server, without " +
		"replicas: "
	registerJetStream(&peer{
		name: "jetstream",
		about: about + "files, synced every two minutes (the default) for off, each second for everysec, with each " +
			"message for always",
	}, jetstream.FileStorage)
	registerJetStream(&peer{
		name:  "jetstream-memory",
		about: about + "in memory, which the end of the server loses, whatever the durability",
	}, jetstream.MemoryStorage)
}

const (
	natsTasks   = "tasks" // subject
	natsPull    = 1000    // messages
	natsPending = 50_000  // messages that were delivered and not acknowledged
)

func registerJetStream(p *peer, storage jetstream.StorageType) {
	p.start = startNATS
	p.version = natsVersion
	p.open = func(addr string) (queue, error) { return openJetStream(addr, storage) }
	register(p)
}

func natsVersion() (string, error) {
	out, err := versionOf(natsBinary, "--version") // nats-server: v2.14.8
	return strings.TrimPrefix(strings.TrimSpace(out), "nats-server: v"), err
}

type jetStreamQueue struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openJetStream(addr string, storage jetstream.StorageType) (queue, error) {
	conn, err := nats.Connect("nats://" + addr)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "TASKS", Subjects: []string{natsTasks}, Retention: jetstream.WorkQueuePolicy, Storage: storage,
	})
	return &jetStreamQueue{conn, js, stream}, err
}

func (q *jetStreamQueue) enqueue(number int64, text string) error {
	_, err := q.js.Publish(context.Background(), natsTasks, encodeBare(number, text))
	return err
}

func (q *jetStreamQueue) enqueueMany(number int64, texts []string) error {
	sent := make([]jetstream.PubAckFuture, len(texts))
	for i, text := range texts {
		var err error
		if sent[i], err = q.js.PublishAsync(natsTasks, encodeBare(number, text)); err != nil {
			return err
		}
	}
	late := time.After(30 * time.Second)
	for _, s := range sent {
		select {
		case <-s.Ok():
		case err := <-s.Err():
			return err
		case <-late:
			return errors.New("the server has not confirmed all within 30 s")
		}
	}
	return nil
}

func (q *jetStreamQueue) work(concurrency int, handle func(int64, string)) (func(), error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	consumer, err := q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: natsPending,
	})
	if err != nil {
		return nil, err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(natsPull))
	if err != nil {
		return nil, err
	}
	handler := newBareHandler(handle)
	work := make(chan jetstream.Msg, natsPull)
	for range concurrency {
		go func() {
			for m := range work {
				if handler.run(m.Data()) == nil {
					_ = m.Ack()
				}
			}
		}()
	}
	go func() {
		defer close(work)
		for {
			m, err := messages.Next()
			if err != nil {
				return // it was stopped
			}
			work <- m
		}
	}()
	return messages.Stop, nil
}

func (q *jetStreamQueue) close() { q.conn.Close() }

// natsBinary is what scripts/setup-peers.sh builds.
const natsBinary = peersDir + "/bin/nats-server"

// startNATS starts a NATS server with JetStream on a free port. Its files are where those of startServer are.
func startNATS(aof string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "bench")
	if err != nil {
		return nil, err
	}
	sync, ok := map[string]string{aofOff: "2m", aofEverysec: "1s", aofAlways: "always"}[aof]
	if !ok {
		return nil, errDurability(aof)
	}
	config := dir + "/nats.conf"
	text := "listen: 127.0.0.1:" + port + "\njetstream { store_dir: \"" + dir + "\", sync_interval: " + sync +
		", max_memory_store: 8GB }\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &server{addr: "127.0.0.1:" + port, dir: dir, cmd: exec.Command(natsBinary, "-c", config)}
	if s.release, err = startTied(s.cmd); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if conn, err := nats.Connect("nats://" + s.addr); err == nil {
			conn.Close()
			return s, nil
		}
	}
	s.stop()
	return nil, errors.New("nats-server did not answer within 10 s")
}
