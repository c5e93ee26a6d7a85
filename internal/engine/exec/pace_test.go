package exec

import (
	"testing"
	"time"
)

// paceStep is one look of the fetcher: the time since the last look, and how many handlers have ended meanwhile, and
// after how long.
type paceStep struct {
	later time.Duration
	n     int
	took  time.Duration
	want  int
}

// paced runs the steps one after the other with n executors.
func paced(t *testing.T, p *pace, executors int, steps []paceStep) {
	t.Helper()
	now := time.Unix(1_000_000, 0)
	for i, s := range steps {
		now = now.Add(s.later)
		for range s.n {
			p.add(s.took)
		}
		if got := p.ahead(executors, now); got != s.want {
			t.Fatalf("look %d, after %d handlers of %v: %d ahead, expected %d", i+1, s.n, s.took, got, s.want)
		}
	}
}

func TestPaceOfHandlersOfOneLength(t *testing.T) {
	for _, tt := range []struct {
		name      string
		executors int
		took      time.Duration
		want      int
	}{
		{"too short to measure", 1, 0, MaxAhead},
		{"of a microsecond", 2, time.Microsecond, MaxAhead},
		{"short, and few executors", 1, 10 * time.Microsecond, 500},
		{"short, and many executors", 50, 10 * time.Microsecond, MaxAhead},
		{"just short enough for the most", 160, time.Millisecond, MaxAhead},
		{"of a millisecond", 50, time.Millisecond, 250},
		{"one for a lone executor", 1, 5 * time.Millisecond, 1},
		{"none for a lone executor", 1, 5*time.Millisecond + 1, 0},
		{"of a second", 50, time.Second, 0},
		{"of an hour", 100_000, time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pace{fixed: -1}
			paced(t, &p, tt.executors, []paceStep{{0, 20, tt.took, tt.want}, {time.Second, 20, tt.took, tt.want}})
		})
	}
}

func TestPaceFollowsTheHandlers(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		steps []paceStep // with 40 executors, for which a worker claims 200 ms of work ahead
	}{
		{"nothing is known", []paceStep{{0, 0, 0, 0}, {ms, 0, 0, 0}, {time.Hour, 0, 0, 0}}},
		{"one handler is enough", []paceStep{{0, 1, ms, 200}}},
		{
			"what is known stays until others have ended",
			[]paceStep{{0, 9, ms, 200}, {ms, 0, 0, 200}, {time.Hour, 0, 0, 200}},
		},
		{"longer ones are believed at once", []paceStep{{0, 9, ms, 200}, {ms, 1, 4 * ms, 50}, {ms, 1, time.Minute, 0}}},
		{"shorter ones by half", []paceStep{
			{0, 9, 4 * ms, 50},
			{ms, 9, 2 * ms, 66},
			{ms, 9, 2 * ms, 80},
			{ms, 99, 0, 160},
			{ms, 99, 0, 320},
		}},
		{"the mean counts", []paceStep{{0, 3, ms, 200}, {ms / 2, 3, ms, 200}, {ms / 2, 3, 3 * ms, 100}}},
		{
			"looks within the window wait for more",
			[]paceStep{{0, 1, ms, 200}, {ms - 1, 1, time.Hour, 200}, {1, 0, 0, 0}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pace{fixed: -1}
			paced(t, &p, 40, tt.steps)
		})
	}
}

func TestPaceThatIsFixed(t *testing.T) {
	for _, fixed := range []int{0, 1, 7, 100_000} {
		p := pace{fixed: fixed}
		paced(t, &p, 50, []paceStep{{0, 0, 0, fixed}, {time.Second, 9, 0, fixed}, {time.Second, 9, time.Hour, fixed}})
		p.stall(time.Now())
		paced(t, &p, 50, []paceStep{{0, 0, 0, fixed}})
	}
}

func TestPaceAfterAStall(t *testing.T) {
	const ms = time.Millisecond
	p := pace{fixed: -1}
	paced(t, &p, 40, []paceStep{{0, 9, ms, 200}})
	p.add(0) // handlers that ended before do not count any more either
	start := time.Unix(1_000_000, 0)
	p.stall(start)
	for _, later := range []time.Duration{0, ms, time.Hour} {
		if n := p.ahead(40, start.Add(later)); n != 0 {
			t.Errorf("%d ahead %v after the stall, expected none: no handler has ended since", n, later)
		}
	}
	p.add(2 * ms)
	if n := p.ahead(40, start.Add(ms-1)); n != 0 {
		t.Errorf("%d ahead within the window, expected none", n)
	}
	// Not half of the number that was known before.
	if n := p.ahead(40, start.Add(ms)); n != 100 {
		t.Errorf("%d ahead after the first handler, expected 100", n)
	}
}
