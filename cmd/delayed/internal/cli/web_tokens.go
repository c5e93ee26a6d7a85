package cli

import (
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/web"
)

// profileWeb is what a profile says of the dashboard.
type profileWeb struct {
	Tokens []profileToken `yaml:"tokens"`
}

// profileToken lets a user sign in.
type profileToken struct {
	Name   string `yaml:"name"`
	Role   string `yaml:"role"`
	Secret string `yaml:"secret"`
}

// tokens returns those of a file, or else of the profile.
func (t *target) tokens(file string) ([]web.Token, error) {
	if file != "" {
		return readTokens(file)
	}
	var tokens []web.Token
	for i, p := range t.web.Tokens {
		role, err := web.ParseRole(p.Role)
		if err != nil {
			return nil, usagef("configuration %s: token %d of %s: %w", t.file, i+1, t.source, err)
		}
		tokens = append(tokens, web.Token{User: web.User{Name: p.Name, Role: role}, Secret: p.Secret})
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	f, err := os.Open(t.file)
	if err != nil {
		return nil, usagef("configuration: %w", err)
	}
	defer f.Close()
	return tokens, onlyOwn(f)
}

// readTokens reads a file with a name, a role and a secret in each line.
func readTokens(file string) ([]web.Token, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("--token-file: %w", err)
	}
	defer f.Close()
	if err := onlyOwn(f); err != nil {
		return nil, err
	}
	var text strings.Builder
	if _, err := f.WriteTo(&text); err != nil {
		return nil, usagef("--token-file: %w", err)
	}
	var tokens []web.Token
	n := 0
	for line := range strings.Lines(text.String()) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		wrong := func(found string) error { // the line itself may have the secret in it
			return usagef("--token-file %s:%d: expected a name, a role and a secret, found %s", file, n, found)
		}
		if len(words) != 3 {
			return nil, wrong(term.Count(len(words), "word"))
		}
		role, err := web.ParseRole(words[1])
		if err != nil {
			return nil, wrong("another role than viewer, operator or admin")
		}
		tokens = append(tokens, web.Token{User: web.User{Name: words[0], Role: role}, Secret: words[2]})
	}
	if len(tokens) == 0 {
		return nil, usagef("--token-file %s has no tokens: expected lines of name, role and secret", file)
	}
	return tokens, nil
}

// onlyOwn refuses a file that others than its owner can read or write.
func onlyOwn(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return usagef("%w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" { // which has no such modes
		return usagef("%s has secrets, and others can read or change it (mode %04o): chmod 600 %s", f.Name(), mode,
			f.Name())
	}
	return nil
}

// randomToken makes a token with the rights of an admin.
func randomToken(name string) (tokens []web.Token, secret string) {
	secret = rand.Text()
	return []web.Token{{User: web.User{Name: name, Role: web.Admin}, Secret: secret}}, secret
}

// String hides the secret.
func (t profileToken) String() string { return fmt.Sprintf("%s (%s)", t.Name, t.Role) }
