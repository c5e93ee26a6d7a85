package workermain

import (
	"errors"
	"os"

	"github.com/sirupsen/logrus"
)

// timestamps have milliseconds: handlers often take less than a second.
const timestamps = "2006-01-02T15:04:05.000Z07:00"

var levels = map[string]logrus.Level{
	"debug": logrus.DebugLevel, "info": logrus.InfoLevel, "warn": logrus.WarnLevel, "error": logrus.ErrorLevel,
}

func (s *settings) setLevel(v string) error {
	level, ok := levels[v]
	if !ok {
		return errors.New("expected debug, info, warn or error")
	}
	s.level = level
	return nil
}

func (s *settings) setFormat(v string) error {
	if v != "text" && v != "json" {
		return errors.New("expected text or json")
	}
	s.json = v == "json"
	return nil
}

// logger returns the program's own logger if it has one, else one by the flags that writes to standard error.
func (s *settings) logger() logrus.FieldLogger {
	if s.worker.Logger != nil {
		return s.worker.Logger
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(s.level)
	if s.json {
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: timestamps})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: timestamps})
	}
	return log
}
