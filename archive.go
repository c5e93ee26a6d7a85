package delayed

import (
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
)

// archiveBounds fills in what a configuration leaves out.
func archiveBounds(most int, keep time.Duration) (int, time.Duration) {
	if most == 0 {
		most = lifecycle.MaxArchived
	}
	if keep == 0 {
		keep = lifecycle.ArchivedLife
	}
	return most, keep
}

// checkArchive says what is wrong with the bounds of the archive.
func checkArchive(config string, most int, keep time.Duration) error {
	switch {
	case most < 1:
		return fmt.Errorf("delayed: %s.ArchiveMax is %d: expected at least 1", config, most)
	case keep < time.Second:
		return fmt.Errorf("delayed: %s.ArchiveFor is %v: expected at least 1s", config, keep)
	}
	return nil
}
