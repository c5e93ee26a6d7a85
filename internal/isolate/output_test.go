package isolate

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestOutputOfALaterJob: what an earlier job has written, however much, changes nothing of what is kept of a later one.
func TestOutputOfALaterJob(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintln(&long, "line", i)
	}
	for _, later := range []string{"short", long.String()} {
		alone, used := &output{to: io.Discard}, &output{to: io.Discard}
		_, _ = used.Write([]byte(strings.Repeat("x", keptHead+2*keptTail)))
		_, _ = used.Write([]byte("y"))
		used.reset()
		for _, o := range []*output{alone, used} {
			_, _ = io.WriteString(o, later)
		}
		if got, want := used.String(), alone.String(); got != want {
			t.Errorf("kept %.20q … %q after an earlier job, expected %.20q … %q", got, got[max(len(got)-20, 0):],
				want, want[max(len(want)-20, 0):])
		}
	}
}
