module github.com/godelayed/delayed/embedded

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/godelayed/delayed v0.0.0
	github.com/gomodule/redigo v1.9.3
)

require (
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/godelayed/delayed => ../
