// Package app has names from before 0.1.0 and does not compile.
package app

import (
	"errors"
	"net"

	d "github.com/godelayed/delayed"

	"app/setup"
)

type store = d.Redis // want `expected Store, found Redis, as before 0.1.0; change it`

type config struct{ d.WorkerConfig }

func run(rdb *d.Redis, name string, all []string) error { // want `expected Store, found Redis`
	_, _ = setup.Dial()
	_ = []any{d.OnConflict(d.Fail), d.OnConflict(d.Skip)} // want `expected ConflictFail, found Fail` `expected ConflictSkip, found Skip`
	if d.OnConflict(d.Replace) != nil {                   // want `expected ConflictReplace, found Replace`
		return d.Discard(errors.New("no such user")) // want `expected Archive, found Discard`
	}
	cfg := d.WorkerConfig{Queues: all, MaxTasks: 5, MaxTime: 7, Grace: 1} // want `expected Limits: d.WorkerLimits{MaxTasks: 5, MaxTime: 7}, found MaxTasks, MaxTime outside of Limits`
	cfg.StopWhenEmpty = true                                              // want `expected Limits.StopWhenEmpty, found StopWhenEmpty`
	cfg.Grace = 2
	_ = config{}.MaxMemory // want `expected Limits.MaxMemory, found MaxMemory`
	w, err := d.NewWorker(rdb, d.WorkerConfig{
		MaxMemory: 1 << 30, // want `expected Limits: d.WorkerLimits{MaxMemory: 1 << 30, StopWhenEmptyFor: 3}`
		Queues:    all,
		// Soon.
		Grace:            4,
		StopWhenEmptyFor: 3,
	})
	_ = w.Listen(func(d.Event) {})                                   // want `expected OnEvent, found Listen`
	_ = new(setup.Servers).Jobs.Listen(nil)                          // want `expected OnEvent, found Listen`
	_ = unknown(w).Listen(func(e d.Event) {})                        // want `expected OnEvent, found Listen`
	_, _ = d.NewWorker(rdb, d.WorkerConfig{Once: true, Queues: all}) // want `expected Limits: d.WorkerLimits{MaxTasks: 1, StopWhenEmpty: true}, found Once`
	_, _ = d.OpenQueue(rdb, d.QueueConfig{Name: name, Legacy: true}) // want `expected OpenQueue\(name, rdb, QueueConfig{...}\)`
	_, _ = d.OpenQueue(rdb, d.QueueConfig{                           // want `expected OpenQueue\(name, rdb, QueueConfig{...}\)`
		Name: name + "-low",
	})
	return err
}

// Nothing is changed where the names are others', or where the change is not certain.
func left(rdb *d.Store, queue d.QueueConfig, once bool) {
	_, _ = net.Listen("tcp", ":80")
	_ = unknown(rdb).Listen(":80")
	_, _ = d.OpenQueue(rdb, queue) // want `expected OpenQueue`
	_ = d.WorkerConfig{Once: once} // want `found Once outside of Limits`
	_ = d.WorkerConfig{Once: 1}    // want `found Once outside of Limits`
	cfg := d.WorkerConfig{
		MaxTasks: 1, // want `found MaxTasks, MaxTime outside of Limits`
		MaxTime:  2,
	}
	cfg.Once = once // want `expected Limits.MaxTasks of 1 and Limits.StopWhenEmpty, found Once`
	type local struct{ Redis, Fail, MaxTasks int }
	d := local{}
	_, _, _ = d.Redis, d.Fail, d.MaxTasks
	_ = d.Skip
}
