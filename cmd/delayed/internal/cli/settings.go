package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/redissentinel"
)

// settings are the flags that all commands have.
type settings struct {
	url, prefix, profile string
	config               string
	json, noColor        bool
	watch                time.Duration
	given                *pflag.FlagSet
}

const urlHelp = `Redis is that of --url, or else of --profile, $DELAYED_URL, $DELAYED_REDIS (as workers have it),
$REDIS_URL, the default profile of the configuration, or redis://localhost:6379/0:
  redis://user:password@host:6379/0           one server; rediss:// with TLS, unix:///path for a socket
  redis://a:6379,b:6379                       several hosts: a Redis Cluster
  redis://s1:26379,s2:26379/0?master=main     with master: the Sentinels of a server
The prefix of its keys is that of --prefix, of the profile, or $DELAYED_PREFIX.`

// watchDefault is how often --watch without a value looks.
const watchDefault = 2 * time.Second

func (s *settings) flags(f *pflag.FlagSet) {
	s.given = f
	f.StringVarP(&s.url, "url", "u", "", "URL of Redis: redis://, rediss:// or unix://")
	f.StringVar(&s.prefix, "prefix", "", "what the keys of all queues begin with")
	f.StringVarP(&s.profile, "profile", "p", "", "profile of the configuration that has URL and prefix")
	f.StringVar(&s.config, "config", "", "configuration file (default $XDG_CONFIG_HOME/delayed/config.yaml)")
	f.BoolVar(&s.json, "json", false, "print JSON; its schemas are in cmd/delayed/schema")
	f.BoolVar(&s.noColor, "no-color", false, "print no colours, as with $NO_COLOR")
	f.DurationVarP(&s.watch, "watch", "w", 0, "look again and again, so often, until Ctrl-C")
	f.Lookup("watch").NoOptDefVal = watchDefault.String()
}

// watched reports whether --watch was given, with whatever value.
func (s *settings) watched() bool { return s.given != nil && s.given.Changed("watch") }

// joinWatch lets "--watch 5s" mean "--watch=5s": pflag takes no value from the next argument, because --watch alone has
// a meaning too.
func joinWatch(args []string) []string {
	joined := []string{} // in place of nil, cobra would take the arguments of this process
	i := 0
	for ; i < len(args) && args[i] != "--"; i++ {
		if (args[i] == "--watch" || args[i] == "-w") && i+1 < len(args) {
			if _, err := time.ParseDuration(args[i+1]); err == nil {
				joined = append(joined, args[i]+"="+args[i+1])
				i++
				continue
			}
		}
		joined = append(joined, args[i])
	}
	return append(joined, args[i:]...)
}

// target is where queues are.
type target struct {
	url, prefix, source string

	web  profileWeb
	file string // that has the profile
}

// target finds out which Redis is meant.
func (s *settings) target(getenv func(string) string) (target, error) {
	config, err := readConfig(s.config, getenv)
	if err != nil {
		return target{}, err
	}
	t := target{prefix: getenv("DELAYED_PREFIX")}
	for name, value := range map[string]string{"url": s.url, "profile": s.profile} {
		// A variable of a script that is not set must not lead to another Redis.
		if value == "" && s.given != nil && s.given.Changed(name) {
			return target{}, usagef(`--%s "": expected a value, or no such flag`, name)
		}
	}
	profile := s.profile
	switch {
	case s.url != "":
		t.url, t.source, profile = s.url, "--url", ""
	case profile == "":
		profile = config.Default
		for _, name := range []string{"DELAYED_URL", "DELAYED_REDIS", "REDIS_URL"} {
			if t.url = getenv(name); t.url != "" {
				t.source, profile = "$"+name, ""
				break
			}
		}
	}
	if profile != "" {
		if t, err = config.target(profile); err != nil {
			return target{}, err
		}
	}
	if t.url == "" {
		t.url, t.source = "redis://localhost:6379/0", "default"
	}
	t.prefix = cmp.Or(s.prefix, t.prefix)
	return t, nil
}

// dial makes a handle on a server, a cluster or the master of Sentinels.
func (t *target) dial() (*delayed.Store, error) {
	dial := delayed.Dial
	switch several, sentinel := kindOf(t.url); {
	case sentinel:
		dial = redissentinel.Dial
	case several:
		dial = rediscluster.Dial
	}
	rdb, err := dial(t.url)
	if err != nil {
		return nil, usageError{fmt.Errorf("%w (the URL is that of %s)", err, t.source)}
	}
	return rdb, nil
}

// kindOf reports whether a URL names several hosts, and whether these are Sentinels. What is wrong with the URL is
// found by those who dial.
func kindOf(rawURL string) (several, sentinel bool) {
	_, rest, _ := strings.Cut(rawURL, "://")
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	if strings.HasPrefix(rest, "/") { // a socket
		return false, false
	}
	values, err := url.ParseQuery(query)
	if err == nil && values.Has("master") {
		return true, true
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.Contains(host, ","), false
}

// config is the configuration file:
//
//	default: local
//	profiles:
//	  local: {url: redis://localhost:6379/0}
//	  shop:  {url: rediss://ops:secret@redis.example.com/0, prefix: "shop:"}
type config struct {
	Default  string             `yaml:"default"`
	Profiles map[string]profile `yaml:"profiles"`

	path string
}

// profile is a Redis with a name.
type profile struct {
	URL    string     `yaml:"url"`
	Prefix string     `yaml:"prefix"`
	Web    profileWeb `yaml:"web"`
}

// readConfig reads the configuration file. Only one that --config names must exist.
func readConfig(given string, getenv func(string) string) (*config, error) {
	c := &config{path: given}
	if given == "" {
		dir := getenv("XDG_CONFIG_HOME")
		if dir == "" && getenv("HOME") != "" {
			dir = filepath.Join(getenv("HOME"), ".config")
		}
		if dir == "" {
			return c, nil
		}
		c.path = filepath.Join(dir, "delayed", "config.yaml")
	}
	text, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && given == "":
		return c, nil
	case err != nil:
		return nil, usagef("configuration: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		// The error's own text shows the lines around it, which may have passwords.
		var place string
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			place = fmt.Sprintf(":%d", syntax.GetToken().Position.Line)
			return nil, usagef("configuration %s%s: %s: expected default, and profiles with url, prefix and web",
				c.path, place, syntax.GetMessage())
		}
		return nil, usagef("configuration %s is not as expected: default, and profiles with url, prefix and web",
			c.path)
	}
	return c, nil
}

// target returns the Redis of the profile with a name.
func (c *config) target(name string) (target, error) {
	p, ok := c.Profiles[name]
	if !ok {
		known := cmp.Or(strings.Join(sorted(c.Profiles), ", "), "none")
		return target{}, usagef("no profile %s in %s: it has %s", quote(name), c.path, known)
	}
	if p.URL == "" {
		return target{}, usagef("profile %s in %s has no url", quote(name), c.path)
	}
	return target{p.URL, p.Prefix, "profile " + name, p.Web, c.path}, nil
}
