package embedded_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/godelayed/delayed/embedded"
)

// TestStore runs the store's table of all scripts against this server. It is that package's own test, as other modules
// cannot call it; here it gets a server.
func TestStore(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "lua")); err != nil {
		t.Skip("the root package is not beside this one: this module is not tested within its repository")
	}
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	args := []string{"test", "-vet=off", "-count=1", "-run=^TestStore$"}
	if raceEnabled() {
		args = append(args, "-race") // which is what has been compiled just now
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-v", "./internal/redisstore")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "DELAYED_STORE_URL="+srv.URL())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, out)
	}
	if !bytes.Contains(out, []byte("--- PASS: TestStore/claim")) {
		t.Fatalf("go %q has not run the table:\n%s", args, out)
	}
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
