package schedule

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

var update = flag.Bool("update", false, "write the golden vectors anew")

const vectorsFile = "../../testdata/schedule/periodic.json"

// vectors is the file that the Python package reads too. testdata/schedule/README.md describes it.
type vectors struct {
	Specs       map[string]bool    `json:"specs"`
	Windows     []vectorWindow     `json:"windows"`
	Far         []vectorFar        `json:"far"`
	Dues        []vectorDue        `json:"dues"`
	Definitions []vectorDefinition `json:"definitions"`
	Plans       []vectorPlan       `json:"plans"`
}

type vectorWindow struct {
	Zone  string             `json:"zone"`
	From  int64              `json:"from"`
	Ticks map[string][]int64 `json:"ticks"`
}

type vectorFar struct {
	Spec  string  `json:"spec"`
	After int64   `json:"after"`
	Ticks []int64 `json:"ticks"`
}

type vectorDue struct {
	Name   string `json:"name"`
	Jitter int64  `json:"jitter"`
	Tick   int64  `json:"tick"`
	Due    int64  `json:"due"`
}

type vectorDefinition struct {
	Spec     string `json:"spec"`
	Zone     string `json:"zone"`
	DST      DST    `json:"dst"`
	Missed   int    `json:"missed"`
	Overlap  int    `json:"overlap"`
	Jitter   int64  `json:"jitter"`
	From     *int64 `json:"from"`
	Until    *int64 `json:"until"`
	Relative int64  `json:"relative"`
	Task     string `json:"task"`
	Hex      string `json:"hex"`
	Declared string `json:"declared"`
}

type vectorPlan struct {
	Name      string     `json:"name"`
	Raw       string     `json:"raw"`
	Now       int64      `json:"now"`
	Free      string     `json:"free"`
	Held      string     `json:"held"`
	DueFree   *int64     `json:"due_free"`
	DueHeld   *int64     `json:"due_held"`
	NotBefore int64      `json:"not_before"`
	Lock      string     `json:"lock"`
	Ticks     [][]string `json:"ticks"`
}

// vectorSpecs are what programs may write as specs, and what they may not.
var vectorSpecs = map[string]bool{
	"* * * * *": true, "*/15 * * * *": true, "5/20 * * * *": true, "1-9/3,30 * * * *": true,
	"0 0 1 JAN,dec Mon-FRI": true, "? ? ? ? ?": true,
	"+5 * * * *": true, "0,,30 * * * *": true, "*-7 * * * *": true, "@hourly": true, "@daily": true,
	"@midnight": true, "@weekly": true, "@monthly": true, "@yearly": true, "@annually": true, "0 0 29 2 *": true,
	"CRON_TZ=Europe/Berlin 0 9 * * *": true, "TZ=UTC @daily": true, "  0  0 * * *  ": true, "@every 90s": true,
	"@every 1h30m": true, "@every 1.5s": true, "@every +2m": true, "@every .5h": true, "@every 1000000us": true,
	"0 0 31 4,6,9,11 mon": true,

	"": false, "* * * *": false, "* * * * * *": false, "60 * * * *": false, "* 24 * * *": false, "* * 0 * *": false,
	"* * 32 * *": false, "* * * 13 *": false, "* * * * 7": false, "5-1 * * * *": false, "*/0 * * * *": false,
	"1-2-3 * * * *": false, "1/2/3 * * * *": false, "a * * * *": false, "-1 * * * *": false, "1- * * * *": false,
	"* * * foo *": false, ", * * * *": false, "0 0 30 2 *": false, "0 0 31 4,6,9,11 *": false, "@Daily": false,
	"@fortnightly": false, "@every": false, "@every 5": false, "@every 0s": false, "@every -5s": false,
	"@every 1.0005s": false, "@every 1d": false, "@every 1 h": false, "CRON_TZ=Moon/Base 0 9 * * *": false,
	"CRON_TZ=Local 0 9 * * *": false, "mon * * * *": false, "0 0 1 mon *": false,
}

// vectorZones are zones, with years whose rules no longer change.
var vectorZones = []struct {
	zone string
	year int
}{
	{"Europe/Berlin", 2023},
	{"America/New_York", 2007},
	{"Australia/Sydney", 2040},
	{"Australia/Lord_Howe", 2021},
	{"America/Sao_Paulo", 2018},
	{"Pacific/Apia", 2011},
	{"Africa/Casablanca", 2017},
	{"Africa/Monrovia", 1972},
	{"Antarctica/Troll", 2019},
	{"Asia/Pyongyang", 2015},
	{"Europe/Lisbon", 1992},
	{"America/Caracas", 2016},
	{"Asia/Gaza", 2012},
	{"Antarctica/Casey", 2018},
	{"Asia/Kolkata", 2023},
	{"", 2023},
}

var vectorTicks = []string{
	"20,50 * * * *", "30 2 * * *", "0 2 * * *", "0 3 * * *", "*/20 1-2 * * *", "0 0 * * *", "30 0 * * *", "59 23 * * *",
	"0 */6 * * *", "15 0,3 * * sun", "0 12 30 12 *", "0 9 * * mon-fri", "0 0-23/9 1,15 * mon", "@every 7h",
}

func newVectors(t *testing.T) *vectors {
	t.Helper()
	v := &vectors{Specs: vectorSpecs}
	for spec, good := range vectorSpecs {
		if _, err := newTimetable(spec, "", 0); (err == nil) != good {
			t.Errorf("%q: %v", spec, err)
		}
	}
	const around = 14 * time.Hour
	for _, z := range vectorZones {
		loc, err := LoadZone(z.zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changesOf(t, loc, z.year) {
			from := change.Add(-around).Truncate(time.Minute)
			w := vectorWindow{Zone: z.zone, From: from.Unix(), Ticks: map[string][]int64{}}
			for _, spec := range vectorTicks {
				for _, dst := range dstPolicies {
					table, err := newTimetable(spec, z.zone, dst)
					if err != nil {
						t.Fatal(err)
					}
					if dst > 0 && (table.every > 0 || table.free) {
						continue
					}
					ticks := []int64{}
					for at := table.Next(from); !at.After(from.Add(2 * around)); at = table.Next(at) {
						ticks = append(ticks, at.Unix()-from.Unix())
					}
					w.Ticks[fmt.Sprintf("%d %s", dst, spec)] = ticks
				}
			}
			v.Windows = append(v.Windows, w)
		}
	}
	for _, spec := range []string{
		"0 0 29 2 *", "0 0 29 2 */2", "0 0 13 * fri", "*/7 */5 */10 */5 *", "@yearly", "@every 90m",
	} {
		for _, after := range []int64{0, 951_782_400_000, 1_700_000_000_500, 4_075_000_000_000} {
			table, err := newTimetable(spec, "America/New_York", 0)
			if err != nil {
				t.Fatal(err)
			}
			far := vectorFar{Spec: spec, After: after, Ticks: []int64{}}
			for at := table.Next(time.UnixMilli(after)); !at.IsZero() && len(far.Ticks) < 4; at = table.Next(at) {
				far.Ticks = append(far.Ticks, at.UnixMilli())
			}
			v.Far = append(v.Far, far)
		}
	}
	for _, name := range []string{"e", "digest", "täglich"} {
		for _, jitter := range []int64{0, 1, 999, 3_600_000} {
			table := &Timetable{name: name, jitter: time.Duration(jitter) * time.Millisecond}
			tick := time.UnixMilli(1_700_000_000_000 + jitter)
			v.Dues = append(v.Dues, vectorDue{name, jitter, tick.UnixMilli(), table.Due(tick).UnixMilli()})
		}
	}
	v.Definitions, v.Plans = newDefinitionVectors(), newPlanVectors(t)
	return v
}

func newDefinitionVectors() (all []vectorDefinition) {
	from, until := int64(0), int64(1_700_000_000_000)
	for _, d := range []vectorDefinition{
		{Spec: "@daily", Missed: 1, Task: "91a166"},
		{
			Spec: "0 2 * * *", Zone: "Europe/Berlin", DST: 3, Missed: -1, Overlap: 2, Jitter: 60_000, From: &from,
			Until: &until, Relative: 1, Task: "93a166c080",
		},
		{Spec: "@every 90s", Missed: 100, Overlap: 1, Jitter: 3_600_000, Until: &until},
	} {
		message, _ := hex.DecodeString(d.Task)
		def := Definition{
			Spec: d.Spec, Zone: d.Zone, DST: d.DST, Missed: d.Missed, Overlap: Overlap(d.Overlap),
			Jitter: time.Duration(d.Jitter) * time.Millisecond, Relative: d.Relative, Message: message,
		}
		if d.From != nil {
			def.From = time.UnixMilli(*d.From)
		}
		if d.Until != nil {
			def.Until = time.UnixMilli(*d.Until)
		}
		d.Hex, d.Declared = hex.EncodeToString(def.encode()), hex.EncodeToString(def.digest())
		all = append(all, d)
	}
	return all
}

func newPlanVectors(t *testing.T) (all []vectorPlan) {
	t.Helper()
	python := wire.Message{
		Kind: wire.PyExtended, Path: "m:f", Py: &wire.PyCall{Args: []byte{0x91, 1}}, Retry: 2,
		Meta: wire.Meta{N: 1, HasN: true, Extra: &wire.Extra{Expiry: 5000}},
	}
	messages := map[string]wire.Message{
		"python": python, "go": {Kind: wire.GoPlain, Path: "f", Payload: []byte{0x91, 7}},
		"plain": {Kind: wire.Py, Path: "m:f"},
	}
	plan := func(name, kind, prev, queued, now string, def Definition) {
		m := messages[kind]
		def.Message = m.Append(nil)
		r := &Record{Was: EntryValue{Name: name}, Def: def, Owner: "shop", declared: []byte{1}}
		r.Prev, r.defRaw = utc(t, prev), def.encode()
		if queued != "" {
			r.Queued = utc(t, queued)
		}
		table, err := r.timetable()
		if err != nil {
			t.Fatal(err)
		}
		r.Next = table.Next(r.Prev)
		r.Was.Raw = r.Encode()
		at := utc(t, now)
		p, err := PlanOf(r.Was, at)
		if err != nil {
			t.Fatal(err)
		}
		v := vectorPlan{
			Name: name, Raw: hex.EncodeToString(r.Was.Raw), Now: at.UnixMilli(), Free: hex.EncodeToString(p.Free),
			Held: hex.EncodeToString(p.Held), DueFree: ms(p.DueFree), DueHeld: ms(p.DueHeld), Lock: p.Lock,
			Ticks: [][]string{},
		}
		if !p.NotBefore.IsZero() {
			v.NotBefore = p.NotBefore.UnixMilli()
		}
		for i := range p.Ticks {
			k := &p.Ticks[i]
			v.Ticks = append(v.Ticks, []string{
				fmt.Sprint(k.At.UnixMilli()), k.ID, hex.EncodeToString(k.Message), k.Free, k.Held,
			})
		}
		all = append(all, v)
	}
	const prev = "2025-01-02 10:00:00"
	for _, overlap := range []Overlap{OverlapAllow, OverlapSkip, OverlapQueue} {
		for _, missed := range []int{MissedSkip, 1, 3} {
			for _, jitter := range []time.Duration{0, 25 * time.Second} {
				def := Definition{Spec: "0 * * * *", Missed: missed, Overlap: overlap, Jitter: jitter, Relative: 1}
				for _, now := range []string{"2025-01-02 10:59:59", "2025-01-02 11:00:20", "2025-01-02 15:10:00"} {
					plan("e", "python", prev, "", now, def)
				}
			}
		}
		def := Definition{Spec: "@every 10s", Missed: 2, Overlap: overlap, Until: utc(t, "2025-01-02 10:00:25")}
		plan("often", "go", prev, "", "2025-01-02 10:00:29", def)
		plan("often", "go", prev, "2025-01-02 09:59:50", "2025-01-02 10:00:29", def)
		plan("late", "go", prev, "2025-01-02 09:59:50", "2025-01-02 12:00:29", def)
	}
	plan("plain", "plain", prev, "", "2025-01-02 11:00:20", Definition{Spec: "@hourly", Missed: 1})
	return all
}

func ms(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixMilli()
	return &n
}

// TestVectors compares what this package computes with the file that the Python package is compared with.
func TestVectors(t *testing.T) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(newVectors(t)); err != nil {
		t.Fatal(err)
	}
	// A line for each vector, so that changes can be read.
	text := strings.NewReplacer(`},{`, "},\n{", `":[{`, "\":[\n{", `},"`, "},\n\"").Replace(out.String())
	if *update {
		if err := os.WriteFile(vectorsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is not what this package computes: run make generate, and read the difference", vectorsFile)
	}
}
