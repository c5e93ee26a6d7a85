// Package page has what is known of pages of the web.
package page

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"time"
)

// ErrScheme says that an address is not of the web.
var ErrScheme = errors.New("page: expected an address that begins with http or https")

type (
	// Address is the address of a page.
	Address string
	// Depth is how many links lie between a seed and a page.
	Depth uint8
)

// Page is a page that was fetched.
type Page struct {
	Address Address
	Status  int
	Fetched time.Time
	Header  map[string][]string
	Body    []byte
	Links   []Address
	parsed  *url.URL `msgpack:"-"`
}

// Job says what to fetch.
type Job struct {
	Address  Address
	Depth    Depth
	Referrer *Address
	Limits   struct {
		Bytes   int64
		Timeout time.Duration
	}
}

// Parse returns the address in its normal form.
func Parse(raw string) (Address, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", ErrScheme
	}
	u.Fragment = ""
	return Address(u.String()), nil
}

// Host returns the host of an address.
func (a Address) Host() string {
	u, err := url.Parse(string(a))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Key returns a short key of an address.
func (a Address) Key() string {
	sum := sha256.Sum256([]byte(a))
	return hex.EncodeToString(sum[:8])
}

// URL returns the parsed address of a page.
func (p *Page) URL() (*url.URL, error) {
	if p.parsed == nil {
		u, err := url.Parse(string(p.Address))
		if err != nil {
			return nil, err
		}
		p.parsed = u
	}
	return p.parsed, nil
}
