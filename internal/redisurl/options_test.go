//go:build unix

package redisurl

import (
	"bytes"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestCertificateIsReadAgain renews the certificate of a client, as tools such as cert-manager do while programs run.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	install := func(certs *redistest.TLS) (der []byte) {
		for to, from := range map[string]string{cert: certs.Cert, key: certs.Key} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if to == cert {
				block, _ := pem.Decode(text)
				der = block.Bytes
			}
		}
		return der
	}
	want := install(redistest.NewTLS(t))
	u := URL{TLS: true, Query: url.Values{"cert": {cert}, "key": {key}}}
	cfg, err := u.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := cfg.GetClientCertificate(nil)
		if err != nil || len(got.Certificate) != 1 || !bytes.Equal(got.Certificate[0], want) {
			t.Fatalf("expected the certificate of the file, found %v, %v", got, err)
		}
		want = install(redistest.NewTLS(t))
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.GetClientCertificate(nil); err == nil {
		t.Error("no error without the file")
	}
}
