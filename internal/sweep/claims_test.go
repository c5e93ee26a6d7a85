package sweep

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

func TestSweeperRequeuesInOldOrderAndCountsDeaths(t *testing.T) {
	b := newBench(t)
	var messages []string
	for i := range byte(25) {
		messages = append(messages, text(extended(fmt.Sprint("id", i), i)))
	}
	b.Do("RPUSH", b.Name, "waiting")
	b.Do("RPUSH", b.Name+"_noti", "1")
	b.deadWorker(messages...)
	g := b.group(time.Millisecond, time.Hour)
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("") == 26 })
	after := b.List("")
	if after[25] != "waiting" {
		t.Errorf("swept tasks stand behind waiting ones")
	}
	for i, m := range after[:25] {
		msg := parse(t, m)
		if int(msg.Payload[0]) != i || msg.Meta.Deaths != 1 ||
			time.Since(time.UnixMilli(msg.Meta.DiedAt)) > time.Minute {
			t.Errorf("task %d: payload %d, %+v", i, msg.Payload[0], msg.Meta)
		}
	}
	b.Check(redistest.Invariants{})
}

// A death together with others counts, but it proves nothing about a task and does not bring the task closer to the
// archive.
func TestSweeperNeverArchivesForSharedDeaths(t *testing.T) {
	b := newBench(t)
	py := "\x91\xa3m:f"
	g := b.group(time.Millisecond, time.Hour)
	message := text(extended("id", 1))
	for death := 1; death <= 3*lifecycle.MaxDeaths; death++ {
		b.Do("DEL", b.Name, b.Name+"_noti")
		b.deadWorker(message, py, "rubbish")
		b.sweptDry(g)
		pending := b.List("")
		if len(pending) != 3 || pending[1] != py || pending[2] != "rubbish" {
			t.Fatalf("after %d deaths: %q", death, pending)
		}
		message = pending[0]
		if msg := parse(t, message); msg.Meta.Deaths != death || msg.Meta.Extra != nil {
			t.Fatalf("after %d deaths: %+v", death, msg.Meta)
		}
	}
	b.Check(redistest.Invariants{})
}

func TestSweeperArchivesAfterThreeDeathsAlone(t *testing.T) {
	b := newBench(t)
	culprit := extended("culprit", 1)
	culprit.Meta.Extra = &wire.Extra{KeepResult: time.Hour.Milliseconds()}
	signals := redisstore.NewSignals(b.source)
	defer signals.Close()
	ends, unsubscribe := signals.SubscribeEnd(b.store, "culprit")
	defer unsubscribe()
	redistest.Await(b.Bench, "the subscription", ends)
	g := b.group(time.Millisecond, time.Hour)
	message, bystander := text(culprit), text(extended("bystander", 2))
	for death := 1; death <= lifecycle.MaxDeaths; death++ {
		b.Do("DEL", b.Name, b.Name+"_noti")
		b.Do("HSET", b.Name+"_claims:"+b.deadWorker(message, bystander), redisstore.MarkAlone, "1-1")
		b.deadWorker("\x91\xa3m:f") // it cannot hold its deaths, and no worker can note that it is alone
		b.deadWorker("rubbish")
		b.sweptDry(g)
		pending := b.List("")
		if death == lifecycle.MaxDeaths {
			if len(pending) != 1 || pending[0] != bystander || b.Size("_archived") != 3 {
				t.Fatalf("after %d deaths: pending %q, %d archived", death, pending, b.Size("_archived"))
			}
			break
		}
		if len(pending) != 4 || !slices.Contains(pending, bystander) {
			t.Fatalf("after %d deaths: %q", death, pending)
		}
		for _, m := range pending {
			if msg, err := wire.Parse([]byte(m), wire.WorkerLimits); err == nil && msg.Meta.ID == "culprit" {
				message = m
			}
		}
	}
	if info := b.Hash("_info")["culprit"]; !strings.Contains(info, "deaths") {
		t.Errorf("info %q", info)
	}
	if !slices.Equal(b.archived, []state.Reason{state.ReasonDeaths}) {
		t.Errorf("archived for %q, expected the one task whose message carries its deaths", b.archived)
	}
	if how := redistest.Await(b.Bench, "that it has ended", ends); how != "ended" {
		t.Errorf("who waits for it receives %q", how)
	}
	if b.Size("_deaths") != 0 {
		t.Errorf("deaths are still counted: %v", b.Hash("_deaths"))
	}
	b.Check(redistest.Invariants{})
}

// A worker's last claim is alone only if the worker had no other: what earlier pages took was in its hands, too.
func TestLastClaimOfManyHasNotDiedAlone(t *testing.T) {
	b := newBench(t)
	claims := make([]string, redisstore.SweepPage+1)
	for i := range claims {
		claims[i] = "\x93\xa3m:f\x91" + string(rune(i)) + "\x80" // a Python message, which cannot hold its deaths
	}
	b.deadWorker(claims...)
	b.sweptDry(b.group(time.Millisecond, time.Hour))
	deaths, err := redis.Strings(b.Do("HKEYS", b.Name+"_deaths"), nil)
	b.Must(err)
	if len(deaths) != len(claims) || b.Size("") != len(claims) {
		t.Errorf("%d notes of deaths and %d pending tasks, expected %d", len(deaths), b.Size(""), len(claims))
	}
	for _, name := range deaths {
		if strings.HasSuffix(name, " alone") {
			t.Errorf("%s: one of %d messages has died alone", name, len(claims))
		}
	}
}

// Tasks that a worker leaves behind while it stops in good order have not died with it.
func TestSweeperCountsNoDeathOfAStoppedWorker(t *testing.T) {
	b := newBench(t)
	message := text(extended("id", 1))
	id := b.deadWorker(message)
	b.Do("HSET", b.Name+"_claims:"+id, redisstore.MarkAlone, "1-1", redisstore.MarkStopped, "1")
	b.sweptDry(b.group(time.Millisecond, time.Hour))
	if got := b.List(""); len(got) != 1 || got[0] != message {
		t.Errorf("expected the message as it was, found %q", got)
	}
	b.Check(redistest.Invariants{})
}

func TestDeathsLapse(t *testing.T) {
	b := newBench(t)
	task := extended("id", 1)
	task.Meta.Deaths = lifecycle.MaxDeaths
	task.Meta.DiedAt = time.Now().Add(-lifecycle.DeathLife - time.Minute).UnixMilli()
	task.Meta.Extra = &wire.Extra{AloneDeaths: lifecycle.MaxDeaths - 1}
	id := b.deadWorker(text(task))
	b.Do("HSET", b.Name+"_claims:"+id, redisstore.MarkAlone, "1-1")
	g := b.group(time.Millisecond, time.Hour)
	b.Until("it is swept", func() bool { b.pass(g); return b.Size("")+b.Size("_archived") == 1 })
	if b.Size("") != 1 {
		t.Fatal("archived because of deaths that count no more")
	}
	msg := parse(t, b.List("")[0])
	if msg.Meta.Deaths != 1 || msg.Meta.Extra == nil || msg.Meta.Extra.AloneDeaths != 1 {
		t.Errorf("%+v, expected one death, alone", msg.Meta)
	}
}

// TestDeathsFollowRedis: Redis's clock decides when a task has died and whether its deaths have lapsed, even if the
// sweeper's clock is wrong by an hour.
func TestDeathsFollowRedis(t *testing.T) {
	for name, tt := range map[string]struct {
		skew, ago time.Duration
		deaths    int
	}{
		"its clock is slow": {time.Hour, lifecycle.DeathLife + time.Hour/2, 1},
		"its clock is fast": {-time.Hour, lifecycle.DeathLife - time.Hour/2, 3},
	} {
		b := newBench(t)
		s := b.store
		s.RedisTime(time.Now().Add(tt.skew))
		task := extended("id", 1)
		task.Meta.Deaths, task.Meta.DiedAt = 2, s.Now().Add(-tt.ago).UnixMilli()
		g := NewGroup(b.config(time.Minute))
		before := s.Now().UnixMilli()
		a := g.actions(s, []redisstore.Claimed{{Token: "1-1", Message: task.Append(nil)}}, redisstore.Death{})[0]
		msg := parse(t, string(a.Renewed))
		if at := msg.Meta.DiedAt; at < before || at > s.Now().UnixMilli() || msg.Meta.Deaths != tt.deaths {
			t.Errorf("%s: died at %d, expected %d or just after; %d deaths, expected %d",
				name, at, before, msg.Meta.Deaths, tt.deaths)
		}
	}
}

// TestLargeMessagesOfTheDead archives large messages that a dead worker and a dead legacy worker held; their other
// tasks go back to the queue, the first claimed first.
func TestLargeMessagesOfTheDead(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	oversized := strings.Repeat("x", wire.WorkerLimits.Bytes+1)
	b.Do("HSET", b.Name+"_processing:dead", "1-1", "a", "1-2", oversized, "1-3", "b")
	b.Do("HSET", b.Name+"_processing", "legacy", oversized)
	g := b.group(time.Second, time.Hour)
	if n, err := g.takeClaims(t.Context(), b.store, "dead"); n != 3 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	b.Must(g.takeLegacyClaim(t.Context(), b.store, "legacy"))
	if got := b.List(""); fmt.Sprint(got) != "[a b]" {
		t.Errorf("pending: %.20q", got)
	}
	g.lines.Close()
	lines := regexp.MustCompile(`(?m)^.*it is too large.*$`).FindAllString(b.log.String(), -1)
	if len(lines) != 2 || strings.Contains(strings.Join(lines, "\n"), "count=") {
		t.Errorf("found the lines %q, expected one for each of two tasks", lines)
	}
	if !slices.Equal(b.archived, []state.Reason{state.ReasonTooLarge, state.ReasonTooLarge}) {
		t.Errorf("archived for %q", b.archived)
	}
	archived := b.Hash("_info")
	if len(archived) != 2 || b.Size("_archived") != 2 {
		t.Fatalf("archived %q", archived)
	}
	for _, raw := range archived {
		info := wire.ParseInfo([]byte(raw))
		if info.Reason != "too large" || !strings.Contains(info.Error, fmt.Sprint(len(oversized), " bytes")) {
			t.Errorf("archived %+v", info)
		}
	}
}

func TestSweepTakesNoMoreThanItsBytes(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	// largest is how many messages of a megabyte one script may take.
	const n, largest = 40, redisstore.MaxCallBytes>>20 + 1
	for i := range n {
		msg := extended(fmt.Sprint(i), 0)
		msg.Payload = wire.AppendBin(nil, bytes.Repeat([]byte{'x'}, 1<<20-200))
		b.Do("HSET", b.Name+"_processing:dead", fmt.Sprintf("1-%d", i+1), text(msg))
	}
	g := b.group(2*time.Second, time.Hour)
	before := b.Server.CommandStats(t)
	if taken, err := g.takeClaims(t.Context(), b.store, "dead"); taken != n || err != nil {
		t.Fatalf("swept %d, %v", taken, err)
	}
	if scripts := b.Server.CommandStats(t).Since(before)["evalsha"]; scripts < n/largest {
		t.Errorf("%d scripts for %d messages of a megabyte", scripts, n)
	}
}
