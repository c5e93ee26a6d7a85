package engine

import (
	"math"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

func TestLimit(t *testing.T) {
	hour := []FuncOption{Timeout(time.Hour)}
	now := time.Now()
	for _, tt := range []struct {
		name  string
		cfg   time.Duration
		opts  []FuncOption
		extra *wire.Extra
		ran   time.Duration
		want  time.Duration // rounded to seconds; 1 means that no time is left
	}{
		{"none", 0, nil, nil, 0, 0},
		{"the worker's", time.Minute, nil, nil, 0, time.Minute},
		{"the function's", time.Minute, hour, nil, 0, time.Hour},
		{"the call's", time.Minute, hour, &wire.Extra{Timeout: 2000}, 0, 2 * time.Second},
		{"none by the call", time.Minute, hour, &wire.Extra{Timeout: wire.Unlimited}, 0, 0},
		{"beyond all bounds by the call", time.Minute, hour, &wire.Extra{Timeout: math.MaxInt64}, 0, 0},
		{"none by the function", time.Minute, []FuncOption{Timeout(math.MaxInt64)}, nil, 0, 0},
		{"a deadline", 0, nil, &wire.Extra{Deadline: now.Add(3 * time.Hour).UnixMilli()}, 0, 3 * time.Hour},
		{"the deadline is earlier", 0, hour, &wire.Extra{Deadline: now.Add(time.Minute).UnixMilli()}, 0, time.Minute},
		{
			"the deadline is earlier than the call's", 0, nil,
			&wire.Extra{Timeout: 3_600_000, Deadline: now.Add(time.Minute).UnixMilli()}, 0, time.Minute,
		},
		{"the timeout is earlier", 0, hour, &wire.Extra{Deadline: now.Add(3 * time.Hour).UnixMilli()}, 0, time.Hour},
		{
			"a deadline, after a while", 0, nil, &wire.Extra{Deadline: now.Add(time.Hour).UnixMilli()}, time.Hour,
			2 * time.Hour,
		},
		{"a deadline that has passed", 0, nil, &wire.Extra{Deadline: now.Add(-time.Hour).UnixMilli()}, 0, 1},
		{
			"a deadline that passed while it ran", 0, nil, &wire.Extra{Deadline: now.Add(-time.Hour).UnixMilli()},
			2 * time.Hour, time.Hour,
		},
		{"a deadline for ever", 0, nil, &wire.Extra{Deadline: math.MaxInt64}, time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFunction(t, "limited", func() {}, tt.opts...)
			c := &lane.Claim{Lane: lane.New(redisstore.NewStore(nil, "", "q"), "w", false), Fn: f}
			c.Msg.Meta.Extra = tt.extra
			r := &exec.Runner{Timeout: tt.cfg}
			got := r.TimeLimit(c, tt.ran)
			if got != tt.want && got.Round(time.Minute) != tt.want && (got-tt.want).Abs() > time.Second {
				t.Errorf("%v, expected %v", got, tt.want)
			}
		})
	}
}
