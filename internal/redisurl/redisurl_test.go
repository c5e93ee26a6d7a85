package redisurl

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want URL
	}{
		{"redis://a", URL{Hosts: []string{"a:6379"}}},
		{"redis://a:6379,b:6380,c", URL{Hosts: []string{"a:6379", "b:6380", "c:6379"}}},
		{"REDISS://a:1,b:65535/", URL{TLS: true, Hosts: []string{"a:1", "b:65535"}}},
		{"redis://a,b/12", URL{Hosts: []string{"a:6379", "b:6379"}, DB: 12}},
		{"redis://a/3/", URL{Hosts: []string{"a:6379"}, DB: 3}},
		{
			"redis://[::1]:7000,[fe80::1%25eth0],127.0.0.1",
			URL{Hosts: []string{"[::1]:7000", "[fe80::1%25eth0]:6379", "127.0.0.1:6379"}},
		},
		{"redis://user:secret@a,b:7", URL{Hosts: []string{"a:6379", "b:7"}, User: "user", Password: "secret"}},
		{"redis://:secret@a", URL{Hosts: []string{"a:6379"}, Password: "secret"}},
		{"redis://u%40x:p%2F%3F%23%40%3A%25+@a", URL{Hosts: []string{"a:6379"}, User: "u@x", Password: "p/?#@:%+"}},
		{"redis://u:p@q:r@a", URL{Hosts: []string{"a:6379"}, User: "u", Password: "p@q:r"}},
		{
			"redis://a?master=m&x=1%2F2",
			URL{Hosts: []string{"a:6379"}, Query: url.Values{"master": {"m"}, "x": {"1/2"}}},
		},
		{"redis://a/1?master=a@b/c", URL{Hosts: []string{"a:6379"}, DB: 1, Query: url.Values{"master": {"a@b/c"}}}},
	} {
		got, err := Parse(test.raw, "6379")
		if err != nil {
			t.Errorf("%s: %v", test.raw, err)
			continue
		}
		if test.want.Query == nil {
			test.want.Query = url.Values{}
		}
		if !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s:\nexpected %+v\nfound    %+v", test.raw, test.want, *got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		"":                              "malformed",
		"a:6379":                        "malformed",
		"hunter2@a:6379":                "malformed",
		"http://hunter2@a":              "scheme",
		"hunter2://a":                   "scheme",
		"redis://":                      "server 1",
		"redis://a,":                    "server 2",
		"redis://a,,b":                  "server 2",
		"redis://a:,b":                  "server 1",
		"redis://a:0":                   "server 1",
		"redis://a:65536":               "server 1",
		"redis://a:6379:6380":           "server 1",
		"redis://::1":                   "server 1",
		"redis://[::1":                  "server 1",
		"redis://a b":                   "server 1",
		"redis://user:hunter2":          "server 1", // no host
		"redis://:hunter2@":             "server 1",
		"redis://hunter2@a":             "a user without a password",
		"redis://hunter2:@a":            "a user without a password",
		"redis://a/x":                   "database",
		"redis://a/-1":                  "database",
		"redis://a/1/hunter2":           "database",
		"redis://user:hunter2/x@a:6379": "malformed",
		"redis://user:hunter2#x@a:6379": "malformed",
		"redis://user:hunter2?x@a:6379": "server 1",
		"redis://user:hunter2%zz@a":     "malformed",
		"redis://hunter2%zz:x@a":        "malformed",
		"redis://a?hunter2=%zz":         "malformed",
	} {
		u, err := Parse(raw, "6379")
		if err == nil {
			t.Errorf("%s: expected an error, found %+v", raw, u)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: expected an error about %s, found: %v", raw, want, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", raw, err)
		}
	}
}

func TestOnly(t *testing.T) {
	u, err := Parse("redis://a?master=m&masster=secret", "6379")
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range [][]string{nil, {"master"}} {
		err := u.Only(known...)
		if err == nil || !strings.Contains(err.Error(), "mas") || strings.Contains(err.Error(), "secret") {
			t.Errorf("Only(%q): %v", known, err)
		}
	}
	if err := u.Only("master", "masster"); err != nil {
		t.Errorf("Only with all parameters: %v", err)
	}
	if u, err = Parse("redis://a?master=m&master=secret", "6379"); err != nil {
		t.Fatal(err)
	}
	if err := u.Only("master"); err == nil || !strings.Contains(err.Error(), "once") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("Only with a parameter that is there twice: %v", err)
	}
	// The password is 12?hunter2.
	if u, err = Parse("redis://user:12?hunter2@a:6379", "6379"); err != nil {
		t.Fatal(err)
	}
	if err := u.Only(); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Only with the end of a password: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"redis://u:p@a:1,b/2?x=y", "rediss://[::1]:1", "redis://", "://@/?#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := Parse(raw, "6379")
		if err == nil && len(u.Hosts) == 0 {
			t.Errorf("%q: no server and no error", raw)
		}
	})
}
