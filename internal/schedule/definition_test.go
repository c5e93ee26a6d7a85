package schedule

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNormalize(t *testing.T) {
	d := Definition{
		Spec: " @daily ", Jitter: time.Second + time.Microsecond,
		From: time.Unix(1, 1).In(time.FixedZone("x", 3600)), Until: time.Unix(2, 999_999_999),
	}
	want := Definition{
		Spec: "@daily", Missed: MissedLatest, Jitter: time.Second, From: time.Unix(1, 0).UTC(),
		Until: time.UnixMilli(2999).UTC(),
	}
	if err := d.Normalize("e", time.Second); err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%v, %+v, expected %+v", err, d, want)
	}
	most := Definition{
		Spec: "@every 1s", DST: DSTSkipMissing | DSTRunTwice, Missed: maxMissed, Overlap: OverlapQueue,
		Jitter: maxJitter,
	}
	if err := most.Normalize("e", time.Second); err != nil {
		t.Error(err)
	}
	for want, d := range map[string]Definition{
		"entry \"e\": the spec \"\"": {},
		"at least 1s":                {Spec: "@every 999ms"},
		"Missed is -2":               {Spec: "@daily", Missed: MissedSkip - 1},
		"Missed is 101":              {Spec: "@daily", Missed: maxMissed + 1},
		"DST is 4":                   {Spec: "@daily", DST: DSTRunTwice << 1},
		"Overlap is 3":               {Spec: "@daily", Overlap: OverlapQueue + 1},
		"Jitter is -1ns":             {Spec: "@daily", Jitter: -1},
		"Jitter is 1ns":              {Spec: "@daily", Jitter: 1},
		"Jitter is 1h0m0.000":        {Spec: "@daily", Jitter: maxJitter + 1},
		"From is 1969":               {Spec: "@daily", From: time.Unix(-1, 0).UTC()},
		"Until is 1970":              {Spec: "@daily", Until: time.Unix(0, 0).UTC()},
		"From is 10000":              {Spec: "@daily", From: time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC)},
		"Until is 10000":             {Spec: "@daily", Until: time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a time after From":          {Spec: "@daily", From: time.Unix(2, 0), Until: time.Unix(2, 0)},
	} {
		if err := d.Normalize("e", time.Second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected an error with %q", d, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"a": "", "Täglich/1@x": "", strings.Repeat("n", maxName): "",
		"": "without a name", strings.Repeat("n", maxName+1): "129 bytes", "@e": "begin with @",
		"two words": "printable", "a\x00": "printable", "\xff": "printable",
	} {
		d := Definition{Spec: "@daily"}
		err := d.Normalize(name, time.Second)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, expected an error with %q", name, err, want)
		}
	}
}
