package wire

import (
	"reflect"
	"testing"
	"time"
)

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		v    any
	}{
		{"small", []any{42, "en"}},
		{"1000ints", make([]int, 1000)},
		{"order", benchOrder()},
	} {
		raw := pack(b, c.v)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(raw, Default); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchMessages(b *testing.B) map[string]Message {
	b.Helper()
	args := pack(b, []any{42, "en"})
	return map[string]Message{
		"bare":  {Kind: GoBare, Path: "example.com/app/mail.Welcome"},
		"plain": {Kind: GoPlain, Path: "example.com/app/mail.Welcome", Payload: args},
		"extended": {
			Kind: GoExtended, Path: "example.com/app/mail.Welcome", Payload: args,
			Meta: Meta{ID: "01HZX3Y2Q8W4E5R6T7Y8U9I0P1", HasN: true, N: 2, EnqueuedAt: 1700000000000},
		},
		"python": {Kind: Py, Path: "mail.tasks:welcome", Py: &PyCall{Args: args}},
	}
}

func BenchmarkParse(b *testing.B) {
	for name, m := range benchMessages(b) {
		raw := m.Append(nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(raw, Default); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMessageAppend(b *testing.B) {
	for name, m := range benchMessages(b) {
		buf := make([]byte, 0, 256)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = m.Append(buf)
			}
		})
	}
}

func benchOrder() order {
	it := item{ID: 5, Name: "screw", Price: 1.5, Tags: []string{"m4", "steel"}}
	return order{
		ID: 7, Email: ptr("someone@example.com"), Items: []item{it, it, it, it},
		Placed: time.Unix(1700000000, 0).UTC(),
	}
}

// benchValues returns arguments like those of real tasks.
func benchValues() []any {
	ints := make([]int, 1000)
	words := make([]string, 100)
	for i := range ints {
		ints[i] = i * i
		words[i%100] = "hello world"
	}
	return []any{
		42, "en", true, 2.5, []byte("data"), time.Unix(1700000000, 0).UTC(), ints[:8], ints, words,
		point{1, 2},
		benchOrder(),
		[]any{int64(1), "a", nil},
		map[string]int{"a": 1, "b": 2, "c": 3, "d": 4},
		map[string]any{"id": int64(5), "name": "n"},
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, v := range benchValues() {
		raw := encode(b, v)
		typ := reflect.TypeOf(v)
		c := codecOf(b, typ)
		dst := reflect.New(typ).Elem()
		b.Run(typ.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := c.Decode(raw, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, v := range benchValues() {
		rv := reflect.ValueOf(v)
		c := codecOf(b, rv.Type())
		buf := make([]byte, 0, 8192)
		b.Run(rv.Type().String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Append(buf, rv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStruct compares structs by name with those by position: their size, and the time to write and read them.
func BenchmarkStruct(b *testing.B) {
	type address struct{ Street, City, Zip, Country string }
	small := struct {
		ID   int64
		Lang string
	}{42, "en"}
	flat := struct {
		ID        int64
		Email     string
		FirstName string
		LastName  string
		Lang      string
		Plan      string
		Age       int
		Active    bool
		CreatedAt time.Time
		Home      address
	}{
		42, "someone@example.com", "Ada", "Lovelace", "en", "trial", 36, true, time.Unix(1700000000, 0).UTC(),
		address{"St James's Square 12", "London", "SW1Y 4JH", "GB"},
	}
	type line struct {
		SKU   string
		Count int
		Cents int64
	}
	lines := make([]line, 100)
	for i := range lines {
		lines[i] = line{"M4-20-A2", i, int64(i) * 199}
	}
	for _, c := range []struct {
		name string
		v    any
	}{{"2fields", small}, {"14fields", flat}, {"100x3fields", lines}} {
		rv := reflect.ValueOf(c.v)
		codec := codecOf(b, rv.Type())
		buf := make([]byte, 0, 8192)
		dst := reflect.New(rv.Type()).Elem()
		for _, form := range []struct {
			name string
			form Form
		}{{"name", ByName}, {"position", ByPosition}} {
			raw, _, err := codec.AppendAs(form.form, nil, rv)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(c.name+"/encode/"+form.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := codec.AppendAs(form.form, buf, rv); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(raw)), "bytes")
			})
			b.Run(c.name+"/decode/"+form.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := codec.Decode(raw, dst); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(raw)), "bytes")
			})
		}
	}
}

func BenchmarkCodecFor(b *testing.B) {
	typ := reflect.TypeFor[order]()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CodecFor(typ); err != nil {
			b.Fatal(err)
		}
	}
}
