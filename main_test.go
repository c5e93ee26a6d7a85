package delayed_test

import (
	"os"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

// childMain lets this binary run isolated tasks, where the system has that.
var childMain = func() {}

func TestMain(m *testing.M) {
	childMain()
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}
