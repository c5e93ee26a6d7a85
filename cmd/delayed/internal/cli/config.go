package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

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

// profile returns the profile with a name.
func (c *config) profile(name string) (profile, error) {
	p, ok := c.Profiles[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(c.Profiles)), ", ")
		if known == "" {
			known = "none"
		}
		return p, usagef("no profile %s in %s: it has %s", quote(name), c.path, known)
	}
	if p.URL == "" {
		return p, usagef("profile %s in %s has no url", quote(name), c.path)
	}
	return p, nil
}
