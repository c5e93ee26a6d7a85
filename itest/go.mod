module github.com/godelayed/delayed/itest

go 1.25.0

require (
	github.com/godelayed/delayed v0.0.0
	github.com/gomodule/redigo v1.9.3
	github.com/sirupsen/logrus v1.10.2
	go.uber.org/goleak v1.3.0
)

require (
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/shamaton/msgpack/v2 v2.4.0 // indirect
	golang.org/x/sys v0.13.0 // indirect
)

replace github.com/godelayed/delayed => ../
