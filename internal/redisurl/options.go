package redisurl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// Options are the parameters of all URLs, whatever they lead to:
//
//	ca             PEM file of the certificates that vouch for servers; with rediss only, as are the next three
//	cert, key      PEM files of the client's certificate and its key
//	server_name    the name that certificates of servers must have, in place of the host
//	dial_timeout   for connecting, such as 2s
//	pool_size      connections that concurrent producers share
var Options = []string{"ca", "cert", "key", "server_name", "dial_timeout", "pool_size"}

// maxDialTimeout is longer than any time-out that makes sense.
const maxDialTimeout = time.Hour

// Limits are the bounds that a URL sets.
type Limits struct {
	DialTimeout time.Duration
	PoolSize    int
}

// Limits returns defaults with the settings of the URL in their place.
func (u *URL) Limits(defaults Limits) (Limits, error) {
	l := defaults
	if text := u.Query.Get("dial_timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Millisecond || d > maxDialTimeout {
			return l, fmt.Errorf("dial_timeout of the Redis URL: expected a time from 1ms to %v, such as 2s",
				maxDialTimeout)
		}
		l.DialTimeout = d
	}
	if text := u.Query.Get("pool_size"); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return l, fmt.Errorf("pool_size of the Redis URL: expected a number of connections from 1 to %d", 1<<16-1)
		}
		l.PoolSize = int(n)
	}
	return l, nil
}

// TLSConfig returns the configuration for TLS, nil without TLS. The client's certificate is read again for each
// connection, because it may be renewed while the program runs; TLSConfig reads it once to find errors now.
func (u *URL) TLSConfig() (*tls.Config, error) {
	if !u.TLS {
		for _, name := range []string{"ca", "cert", "key", "server_name"} {
			if u.Query.Has(name) {
				return nil, fmt.Errorf("parameter %s of the Redis URL: expected scheme rediss, found redis, which is "+
					"without TLS", name)
			}
		}
		return nil, nil //nolint:nilnil // there is none
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Query.Get("server_name")}
	if path := u.Query.Get("ca"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("ca of the Redis URL: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca of the Redis URL: %s holds no certificate: expected some in PEM form", path)
		}
	}
	cert, key := u.Query.Get("cert"), u.Query.Get("key")
	if (cert == "") != (key == "") {
		return nil, errors.New("cert and key of the Redis URL: expected both or none")
	}
	if cert != "" {
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			return nil, fmt.Errorf("cert and key of the Redis URL: %w", err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
	}
	return cfg, nil
}

// Known returns the parameters of all URLs, and more.
func Known(more ...string) []string { return slices.Concat(more, Options) }
