module github.com/godelayed/delayed

go 1.25.0

require github.com/gomodule/redigo v1.9.3

require (
	github.com/shamaton/msgpack/v2 v2.4.0 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/sys v0.13.0 // indirect
)
