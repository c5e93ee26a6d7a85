module github.com/godelayed/delayed/contrib/goredis

go 1.25.0

require (
	github.com/godelayed/delayed v0.1.0
	github.com/gomodule/redigo v1.9.3
	github.com/redis/go-redis/v9 v9.19.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/mna/redisc v1.4.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/shamaton/msgpack/v2 v2.4.0 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/godelayed/delayed => ../../
