package sweep

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// bench is a queue on a real server with what tests need around it.
type bench struct {
	*redistest.Bench
	source   redisstore.Source
	store    *redisstore.Store
	log      *redistest.Log
	archived []state.Reason // the reasons with which OnArchive was called
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, redistest.Shared(t))
}

func newBenchOn(t testing.TB, server *redistest.Server) *bench {
	t.Helper()
	b := &bench{
		Bench: redistest.NewBench(t, server), log: new(redistest.Log),
		source: redisstore.PoolSource{Pool: server.Pool(t)},
	}
	b.Log = b.log
	b.store = redisstore.NewStore(b.source, "", b.Name)
	return b
}

// config returns the configuration of a group that runs alone.
func (b *bench) config(life time.Duration) Config {
	return Config{
		Stores: []*redisstore.Store{b.store}, Interval: time.Second, Life: life,
		ArchiveMax: lifecycle.MaxArchived, ArchiveFor: lifecycle.ArchivedLife,
		Health: NewLinkHealth(life), Log: loop.NewJournal(b.log.Logger()),
		OnArchive: func(_ string, _ *wire.Message, reason state.Reason, _ error) {
			b.archived = append(b.archived, reason)
		},
	}
}

// group returns a sweeper of the queue whose contact with Redis has lasted for a while.
func (b *bench) group(life, contact time.Duration) *Group {
	b.T.Helper()
	g := NewGroup(b.config(life))
	b.Must(g.open(context.Background()))
	b.T.Cleanup(g.link.HangUp)
	g.cfg.Health.since = time.Now().Add(-contact)
	return g
}

func (b *bench) pass(g *Group) {
	b.T.Helper()
	b.Must(g.pass(context.Background(), time.Second))
}

// sweptDry makes passes until no dead worker is left.
func (b *bench) sweptDry(g *Group) {
	b.T.Helper()
	g.confirmAfter = time.Millisecond
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("_workers") == 0 })
}

// deadWorker creates what a killed worker leaves: claims, and no heartbeat. It returns the worker's id.
func (b *bench) deadWorker(messages ...string) string {
	b.T.Helper()
	id := wire.NewWorkerID()
	b.Do("SADD", b.Name+"_workers", id)
	for i, m := range messages {
		b.Do("HSET", b.Name+"_processing:"+id, fmt.Sprintf("1-%d", i+1), m)
	}
	b.Do("HSET", b.Name+"_claims:"+id, "1", "1")
	return id
}

// counters returns the counters of today.
func (b *bench) counters() map[string]int {
	b.T.Helper()
	m, err := redis.IntMap(b.Conn.Do("HGETALL", b.store.StatsKey()))
	b.Must(err)
	return m
}

// extended returns a message for Go with an argument of one byte.
func extended(id string, arg byte) wire.Message {
	return wire.Message{Kind: wire.GoExtended, Path: "a.f", Payload: []byte{arg}, Meta: wire.Meta{ID: id}}
}

func text(m wire.Message) string { return string(m.Append(nil)) }

func parse(t testing.TB, message string) wire.Message {
	t.Helper()
	msg, err := wire.Parse([]byte(message), wire.WorkerLimits)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}
