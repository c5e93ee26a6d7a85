// Package redisurl parses URLs that name several Redis servers, such as redis://user:password@a:6379,b:6379/0, which
// net/url does not accept. Its errors do not quote any part of a URL that might contain a password.
package redisurl

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// URL is a parsed URL.
type URL struct {
	TLS            bool     // scheme rediss
	Hosts          []string // host and port of each server, at least one
	User, Password string
	DB             int
	Query          url.Values
}

// errMalformed is the error for URLs that cannot be quoted, because that might show a password.
var errMalformed = errors.New("malformed Redis URL: expected redis://[user:password@]host[:port][,host[:port]…][/db] " +
	"or the same " +
	"with rediss://; the characters / ? # @ : and % of a user or password are written as %2F %3F %23 %40 %3A %25")

// ErrScheme is the error for a URL with another scheme. Callers that know more schemes append them.
var ErrScheme = errors.New("unknown scheme of the Redis URL: expected redis or rediss")

// Parse parses a URL with scheme redis or rediss. Servers without a port get the default port.
func Parse(raw, defaultPort string) (*URL, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, errMalformed
	}
	u := &URL{}
	switch strings.ToLower(scheme) {
	case "redis":
	case "rediss":
		u.TLS = true
	default:
		return nil, ErrScheme
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(rest, "#") || strings.Contains(path, "@") {
		return nil, errMalformed // a password with such a character has been cut in two
	}
	var err error
	if u.Query, err = url.ParseQuery(query); err != nil {
		return nil, errMalformed
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		if u.User, err = url.PathUnescape(user); err != nil {
			return nil, errMalformed
		}
		if u.Password, err = url.PathUnescape(password); err != nil {
			return nil, errMalformed
		}
		authority = authority[at+1:]
	}
	if err := CheckLogin(u.User, u.Password); err != nil {
		return nil, err
	}
	for i, server := range strings.Split(authority, ",") {
		addr, err := address(server, defaultPort)
		if err != nil {
			return nil, fmt.Errorf("server %d of the Redis URL: %w", i+1, err)
		}
		u.Hosts = append(u.Hosts, addr)
	}
	if path = strings.TrimSuffix(path, "/"); path != "" {
		if u.DB, err = strconv.Atoi(path); err != nil || u.DB < 0 {
			return nil, errors.New("path of the Redis URL: expected the number of a database, from 0")
		}
	}
	return u, nil
}

// CheckLogin refuses a user without a password: the client would not log in, and so be the default user, who may
// usually do anything.
func CheckLogin(user, password string) error {
	if user != "" && password == "" {
		return errors.New("the Redis URL names a user without a password: expected both, as in " +
			"redis://user:password@host, or a password alone " +
			"behind a colon; for an ACL user with nopass, any password will do")
	}
	return nil
}

var errAddress = errors.New(
	"expected host or host:port with a port from 1 to 65535; an IPv6 address stands in brackets")

// address completes host[:port].
func address(server, defaultPort string) (string, error) {
	host, port := server, defaultPort
	if strings.HasPrefix(server, "[") && strings.HasSuffix(server, "]") {
		host = server[1 : len(server)-1]
	} else if strings.Contains(server, ":") {
		var err error
		if host, port, err = net.SplitHostPort(server); err != nil {
			return "", errAddress
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" ||
		strings.ContainsAny(host, "[] ") {
		return "", errAddress
	}
	return net.JoinHostPort(host, port), nil
}

// Only returns an error if there is a query parameter that is not among the known ones, or is there twice.
func (u *URL) Only(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(u.Query)) {
		switch {
		case slices.Contains(known, name) && len(u.Query[name]) > 1:
			return fmt.Errorf("parameter %q of the Redis URL: expected it once, found it %d times", name,
				len(u.Query[name]))
		case slices.Contains(known, name):
		case strings.Contains(name, "@"):
			return errMalformed // the end of a password with a question mark
		case len(known) == 0:
			return fmt.Errorf("parameter %q of the Redis URL: expected none", name)
		default:
			return fmt.Errorf("parameter %q of the Redis URL: expected one of %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}
