module github.com/godelayed/delayed/delayedvet

go 1.25.0

require (
	github.com/godelayed/delayed v0.1.0
	github.com/golangci/plugin-module-register v0.1.2
	golang.org/x/tools v0.49.0
)

require (
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/shamaton/msgpack/v2 v2.4.0 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	golang.org/x/mod v0.39.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
