package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var jetStreamPeer = &peer{
	name: "jetstream",
	about: "explicit acknowledgements, which the server does not confirm; pulls of 1,000; a batch is 1,000 " +
		"publications and the wait for their confirmations; a work queue in files on one server without replicas, " +
		"synced every two minutes (the default) for off, each second for everysec, with each message for always",
	version: natsVersion,
	start:   startNATS,
	open:    openJetStream,
}

const (
	natsTasks   = "tasks" // subject
	natsPull    = 1000    // messages
	natsPending = 50_000  // messages that were delivered and not acknowledged
)

func natsVersion() (string, error) {
	out, err := exec.Command(natsBinary, "--version").Output() // nats-server: v2.14.8
	if err != nil {
		return "", fmt.Errorf("nats-server is missing; install it with `make bench-peers-setup`: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "nats-server: v"), nil
}

type jetStreamQueue struct {
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openJetStream(addr string) (queue, error) {
	conn, err := nats.Connect(addr)
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
		Name: "TASKS", Subjects: []string{natsTasks}, Retention: jetstream.WorkQueuePolicy,
	})
	return &jetStreamQueue{js, stream}, err
}

func (q *jetStreamQueue) enqueue(number int64, text string) error {
	_, err := q.js.Publish(context.Background(), natsTasks, encodeBare(number, text))
	return err
}

func (q *jetStreamQueue) enqueueMany(number int64, texts []string) error {
	for _, text := range texts {
		if _, err := q.js.PublishAsync(natsTasks, encodeBare(number, text)); err != nil {
			return err
		}
	}
	select {
	case <-q.js.PublishAsyncComplete():
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("the server has not confirmed all within 30 s")
	}
}

func (q *jetStreamQueue) work(concurrency int, handle func(int64, string)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	consumer, err := q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: natsPending,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(natsPull))
	if err != nil {
		return err
	}
	handler := newBareHandler(handle)
	work := make(chan jetstream.Msg, natsPull)
	for range concurrency {
		go func() {
			for m := range work {
				handler.run(m.Data())
				_ = m.Ack()
			}
		}()
	}
	go func() {
		defer close(work)
		for {
			m, err := messages.Next()
			if err != nil {
				return // the server has ended
			}
			work <- m
		}
	}()
	return nil
}

// natsBinary is what scripts/setup-peers.sh builds.
const natsBinary = ".peers/bin/nats-server"

// startNATS starts a NATS server with JetStream.
func startNATS(aof string) (*server, error) {
	sync := map[string][]string{aofOff: {"2m"}, aofEverysec: {"1s"}, aofAlways: {"always"}}[aof]
	return launch(aof, sync, func(port, dir string) (*exec.Cmd, string, error) {
		config := dir + "/nats.conf"
		text := fmt.Sprintf("listen: 127.0.0.1:%s\njetstream { store_dir: %q, sync_interval: %s }\n", port, dir,
			sync[0])
		return exec.Command(natsBinary, "-c", config), "nats://127.0.0.1:" + port,
			os.WriteFile(config, []byte(text), 0o600)
	}, func(_ context.Context, addr string) error {
		conn, err := nats.Connect(addr)
		if err == nil {
			conn.Close()
		}
		return err
	})
}
