module github.com/godelayed/delayed/embedded

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/godelayed/delayed v0.1.0
	github.com/gomodule/redigo v1.9.3
)

require (
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/shamaton/msgpack/v2 v2.4.0 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/godelayed/delayed => ../
