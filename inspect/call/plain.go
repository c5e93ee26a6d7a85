package call

import (
	"encoding/base64"
	"fmt"
	"math"
	"time"
)

// Plain returns a decoded value as JSON can show it: bytes in base64, and keys of maps as texts.
func Plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case time.Time:
		return v.UTC()
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Plain(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k := range v {
			m[k] = Plain(v[k])
		}
		return m
	case map[any]any:
		m := make(map[string]any, len(v))
		for k := range v {
			m[fmt.Sprint(k)] = Plain(v[k])
		}
		return m
	}
	return v
}
