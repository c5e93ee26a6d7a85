package redistest

import (
	"bytes"
	"sync"

	"github.com/sirupsen/logrus"
)

// Log collects what is logged. Its zero value is ready to use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Logger returns a logger that writes lines of every level to l.
func (l *Log) Logger() logrus.FieldLogger {
	logger := logrus.New()
	logger.SetOutput(l)
	logger.SetLevel(logrus.DebugLevel)
	logger.SetFormatter(&logrus.TextFormatter{
		DisableColors: true, TimestampFormat: "15:04:05.000",
		FullTimestamp: true,
	})
	return logger
}
