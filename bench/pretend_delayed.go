package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/lua"
)

// pretended is an idle worker that has one connection only, so that thousands fit into a process. It sends what a real
// one sends: its registration, heartbeats, looks for what is due, and waits in between. It does not sweep.
type pretended struct {
	conn                  redis.Conn
	register, beat, check *redis.Script
	queue, id             string
	life                  time.Duration // of its heartbeat
}

// pretend connects and registers so many idle workers, and lets them go on until this process ends.
func (d *delayedQueue) pretend(workers int, life time.Duration) error {
	var scripts [3]*redis.Script
	for i, of := range []struct {
		name string
		keys int
	}{{"register", 3}, {"beat", 3}, {"check", 6}} {
		scripts[i] = redis.NewScript(of.keys, lua.Source(of.name))
	}
	return fanOut(paceCallers, workers, func(i int) error {
		conn, err := redis.Dial("tcp", d.addr)
		if err != nil {
			return err
		}
		w := &pretended{conn, scripts[0], scripts[1], scripts[2], d.names[0], fmt.Sprintf("pretended-%05d", i), life}
		if _, err := w.register.Do(conn, w.heartbeat(), w.queue+"_workers", w.queue+"_processing:"+w.id,
			life.Milliseconds(), w.id, "pretended"); err != nil {
			return err
		}
		go w.run()
		return nil
	})
}

func (w *pretended) heartbeat() string { return w.queue + "_worker:" + w.id }

// run takes turns between a heartbeat and a look for what is due, with a wait before each.
func (w *pretended) run() {
	period := w.life * 9 / 80 // a heartbeat comes after two of them
	wait := time.Duration(rand.Float64() * float64(2*period))
	for turn := 0; ; turn++ {
		var err error
		if _, err = w.conn.Do("BLPOP", w.queue+"_rewait:"+w.id, wait.Seconds()); err == nil {
			if turn%2 == 0 {
				_, err = w.beat.Do(w.conn, w.heartbeat(), w.queue+"_processing:"+w.id, w.queue+"_control",
					w.life.Milliseconds(), 0, 1)
			} else {
				_, err = w.check.Do(w.conn, w.queue, w.queue+"_scheduled", w.queue+"_retry", w.queue+"_parked",
					w.queue+"_groups", w.queue+"_suspects")
			}
		}
		if err != nil {
			return // the server has ended, as it does after a measurement
		}
		wait = period
	}
}
