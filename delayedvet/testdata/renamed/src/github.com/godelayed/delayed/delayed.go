// Package delayed stands for the library as it is since its names changed.
package delayed

type Store struct{}

type Conflict int

const (
	ConflictFail Conflict = iota
	ConflictSkip
	ConflictReplace
)

type WorkerConfig struct {
	Queues []string
	Limits WorkerLimits
	Grace  int
}

type WorkerLimits struct {
	MaxTasks, MaxTime, MaxMemory int
	StopWhenEmpty                bool
	StopWhenEmptyFor             int
}

type Event interface{ event() }

type Worker struct{}

func (w *Worker) OnEvent(fn func(Event)) error { return nil }

type Queue struct{}

type QueueConfig struct{ Legacy bool }

func Dial(url string) (*Store, error)                                    { return nil, nil }
func NewWorker(rdb *Store, cfg WorkerConfig) (*Worker, error)            { return nil, nil }
func OpenQueue(name string, rdb *Store, cfg QueueConfig) (*Queue, error) { return nil, nil }
func OnConflict(c Conflict) any                                          { return nil }
func Archive(err error) error                                            { return err }
