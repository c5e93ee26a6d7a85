package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "default: here\nprofiles:\n  here: {url: \"redis://here\", prefix: \"h:\"}\n" +
		"  there: {url: \"redis://there\"}\n  empty: {prefix: \"x:\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		s           settings
		env         map[string]string
		url, prefix string
		wrong       string
	}{
		"nothing": {url: "redis://localhost:6379/0"},
		"REDIS_URL": {
			env: env("REDIS_URL", "redis://r", "DELAYED_PREFIX", "p:"), url: "redis://r", prefix: "p:",
		},
		"DELAYED_REDIS goes before REDIS_URL": {
			env: env("REDIS_URL", "redis://r", "DELAYED_REDIS", "redis://w"), url: "redis://w",
		},
		"DELAYED_URL goes before all others": {
			env: env("REDIS_URL", "redis://r", "DELAYED_REDIS", "redis://w", "DELAYED_URL", "redis://d"),
			url: "redis://d",
		},
		"--url goes before the environment": {
			s: settings{url: "redis://f"}, env: env("DELAYED_URL", "redis://d"), url: "redis://f",
		},
		"--prefix goes before the environment": {
			s: settings{prefix: "q:"}, env: env("DELAYED_PREFIX", "p:"), url: "redis://localhost:6379/0", prefix: "q:",
		},
		"default profile": {s: settings{config: file}, url: "redis://here", prefix: "h:"},
		"the environment goes before the default profile": {
			s: settings{config: file}, env: env("REDIS_URL", "redis://r"), url: "redis://r",
		},
		"--profile goes before the environment": {
			s:   settings{config: file, profile: "there"},
			env: env("DELAYED_URL", "redis://d", "DELAYED_PREFIX", "p:"), url: "redis://there",
		},
		"unknown profile":       {s: settings{config: file, profile: "x"}, wrong: "it has empty, here, there"},
		"profile without a URL": {s: settings{config: file, profile: "empty"}, wrong: "has no url"},
		"missing file":          {s: settings{config: file + ".no"}, wrong: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.s.target(func(name string) string { return c.env[name] })
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) || !errors.As(err, new(usageError)) {
					t.Errorf("found error %v, expected %q", err, c.wrong)
				}
				return
			}
			if err != nil || got.url != c.url || got.prefix != c.prefix {
				t.Errorf("found %+v, %v, expected %q and %q", got, err, c.url, c.prefix)
			}
		})
	}
}

func TestConfigurationIsFoundAndErrorsHideIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "delayed"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "delayed", "config.yaml")
	for _, c := range []struct{ text, wrong string }{
		{"profiles: {a: {url: redis://u:secret@a}}", ""},
		{"profiles:\n  a:\n    uri: redis://u:secret@a\n", ":3: "},
		{"profiles: [redis://u:secret@a]", "expected default, and profiles"},
		{"profiles: {a: {url: \"redis://u:secret@a}}", "expected default, and profiles"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"XDG_CONFIG_HOME", "HOME"} {
			config, err := readConfig("", func(n string) string {
				switch {
				case n != name:
					return ""
				case n == "HOME":
					return filepath.Join(dir, "nobody")
				}
				return dir
			})
			if name == "HOME" {
				if err != nil || len(config.Profiles) > 0 {
					t.Errorf("a missing file: %v, %v", config, err)
				}
				continue
			}
			switch {
			case c.wrong == "" && (err != nil || config.Profiles["a"].URL != "redis://u:secret@a"):
				t.Errorf("%q: %v, %v", c.text, config, err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("%q: error %v, expected %q", c.text, err, c.wrong)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("%q: the error shows a password: %v", c.text, err)
			}
		}
	}
}

func TestKindOfURL(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]string{
		"redis://a:6379/0":                        "one",
		"redis://user:pass,word@a:6379/0":         "one",
		"rediss://a,b?ca=/x":                      "several",
		"redis://u:p@a:1,b:2,c:3":                 "several",
		"redis://s1:26379,s2:26379/0?master=main": "sentinel",
		"redis://s1?master=main":                  "sentinel",
		"unix:///run/a,b.sock?db=1":               "one",
		"nonsense":                                "one",
	} {
		several, sentinel := kindOf(rawURL)
		got := "one"
		if sentinel {
			got = "sentinel"
		} else if several {
			got = "several"
		}
		if got != want {
			t.Errorf("%s is %s, expected %s", rawURL, got, want)
		}
	}
}
