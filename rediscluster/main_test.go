//go:build unix

package rediscluster

import (
	"os"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}
