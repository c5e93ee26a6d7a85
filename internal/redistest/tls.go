package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TLSName is the name in the certificates of NewTLS, which do not hold for any address.
const TLSName = "redis.test"

// TLS is a private authority with one certificate, for servers and clients alike. All are files in PEM form.
type TLS struct {
	CA, Cert, Key string
}

// NewTLS makes an authority and a certificate.
func NewTLS(t testing.TB) *TLS {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatalf("redistest: %v", err)
		}
		return path
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		return k
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a private authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: TLSName}, DNSNames: []string{TLSName},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, leafKey := key(), key()
	sign := func(cert *x509.Certificate, public *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, cert, authority, &public.PublicKey, authorityKey)
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		return der
	}
	der, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return &TLS{
		CA:   write("ca.pem", "CERTIFICATE", sign(authority, authorityKey)),
		Cert: write("cert.pem", "CERTIFICATE", sign(leaf, leafKey)),
		Key:  write("key.pem", "EC PRIVATE KEY", der),
	}
}

// Args are the arguments of a server that has its TLS port there and asks clients for certificates.
func (c *TLS) Args(port string) []string {
	return []string{
		"--tls-port", port, "--tls-ca-cert-file", c.CA, "--tls-cert-file", c.Cert, "--tls-key-file", c.Key,
		"--tls-auth-clients", "yes",
		"--tls-replication", "yes",
	}
}

// withoutTLS is the environment variable that allows a server that is built without TLS.
const withoutTLS = "REDIS_SERVER_WITHOUT_TLS"

// Start starts a server of the test's own, see Start, that also serves TLS, and returns the address of that. If the
// server is built without TLS, the test fails, or is skipped if REDIS_SERVER_WITHOUT_TLS is 1.
func (c *TLS) Start(t testing.TB, args ...string) (s *Server, addr string) {
	t.Helper()
	port := strconv.Itoa(freePort())
	s, err := launch(t.TempDir(), append(c.Args(port), args...))
	switch {
	case err != nil && lacksTLS(err.Error()) && os.Getenv(withoutTLS) == "1":
		t.Skip("redistest: the server is built without TLS, and " + withoutTLS + " is 1")
	case err != nil && lacksTLS(err.Error()):
		t.Fatalf("redistest: the server is built without TLS, expected one that has it, as Debian's: %v", err)
	case err != nil:
		t.Fatalf("redistest: %v", err)
	}
	s.private = true
	t.Cleanup(func() { s.end(t) })
	return s, "127.0.0.1:" + port
}

// lacksTLS reports whether a server ended at its start because it is built without TLS.
func lacksTLS(output string) bool {
	return strings.Contains(output, "Bad directive or wrong number of arguments") || // Redis
		strings.Contains(output, "Failed finding TLS support") // Valkey
}

// Query returns the parameters of a URL that leads to such a server, without those of the given names.
func (c *TLS) Query(without ...string) url.Values {
	q := url.Values{"ca": {c.CA}, "cert": {c.Cert}, "key": {c.Key}, "server_name": {TLSName}}
	for _, name := range without {
		q.Del(name)
	}
	return q
}
