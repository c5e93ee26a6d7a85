module github.com/godelayed/delayed

go 1.25.0

require (
	github.com/FZambia/sentinel/v2 v2.0.1
	github.com/gomodule/redigo v1.9.3
	github.com/mna/redisc v1.4.0
	github.com/robfig/cron/v3 v3.0.1
	github.com/shamaton/msgpack/v2 v2.4.0
	github.com/sirupsen/logrus v1.10.2
)

require golang.org/x/sys v0.47.0 // indirect
