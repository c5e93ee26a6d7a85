package delayed_test

import (
	"os"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
