//go:build unix

package dashboard_test

import (
	"os"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/dashboard/browser"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(browser.Main(m))
}
