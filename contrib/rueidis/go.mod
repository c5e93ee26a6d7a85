module github.com/godelayed/delayed/contrib/rueidis

go 1.25.0

require (
	github.com/godelayed/delayed v0.1.0
	github.com/gomodule/redigo v1.9.3
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/mna/redisc v1.4.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/shamaton/msgpack/v2 v2.4.0 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/godelayed/delayed => ../../
