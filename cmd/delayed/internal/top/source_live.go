package top

import (
	"context"
	"sync"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// live is the source that asks Redis.
type live struct {
	*inspect.Inspector

	meter *meter

	mu      sync.Mutex // protects what follows
	found   inspect.Diagnosis
	foundAt time.Time // by our clock
}

// diagnoseEvery is the shortest time between two diagnoses: they read more than a screen does.
const diagnoseEvery = 3 * time.Second

func (l *live) diagnose(ctx context.Context) (inspect.Diagnosis, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.foundAt) < diagnoseEvery {
		return l.found, nil
	}
	d, err := l.Diagnose(ctx)
	if err == nil {
		l.found, l.foundAt = d, time.Now()
	}
	return d, err
}

func newLive(ins *inspect.Inspector) *live {
	return &live{Inspector: ins, meter: newMeter(ins)}
}

func (l *live) flows(ctx context.Context, s span, queues []string) (map[string]queueFlow, error) {
	return l.meter.read(ctx, s, queues)
}

func (l *live) pause(ctx context.Context, queue string, paused bool) error {
	if paused {
		return l.Pause(ctx, queue)
	}
	return l.Resume(ctx, queue)
}

// fault tells an error about some of the queues from one that has left nothing to show.
func fault(err error, found int) (some, all error) {
	if found == 0 {
		return nil, err
	}
	return err, nil
}

func (l *live) entries(ctx context.Context) (d entriesData, err error) {
	entries, err := l.Entries(ctx)
	for _, e := range entries {
		d.entries = append(d.entries, entryRow{e.PeriodicEntry, e.Queue})
	}
	d.fault, err = fault(err, len(entries))
	return d, err
}

func (l *live) entry(ctx context.Context, queue, name string) (d entryData, err error) {
	entries, err := l.Entries(ctx, queue)
	for _, e := range entries {
		if e.Name == name {
			d.entry = &entryRow{e.PeriodicEntry, queue}
		}
	}
	if d.entry == nil {
		return d, err
	}
	d.ticks, err = l.EntryHistory(ctx, queue, name)
	return d, err
}

func (l *live) runEntry(ctx context.Context, queue, name string) error {
	_, err := l.RunEntry(ctx, queue, name)
	return err
}

func (l *live) pauseEntry(ctx context.Context, queue, name string, paused bool) error {
	if paused {
		return l.PauseEntry(ctx, queue, name)
	}
	return l.ResumeEntry(ctx, queue, name)
}

func (l *live) groups(ctx context.Context) (d groupsData, err error) {
	groups, err := l.Groups(ctx)
	d.groups = groups
	d.fault, err = fault(err, len(groups))
	return d, err
}
