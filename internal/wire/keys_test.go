package wire

import "testing"

func TestTextKeys(t *testing.T) {
	for text, want := range map[string]bool{
		"\xc0": true, "\x90": true, "\x80": true, "\xa3abc": true, "\xcb\x00\x00\x00\x00\x00\x00\x00\x00": true,
		"\x81\xa1k\x01": true, "\x81\x01\xa1k": false, "\x81\xc3\xa1k": false,
		"\x82\xa1k\x81\xa1l\xc4\x01x\xa1m\x92\x01\xd6\xff\x00\x00\x00\x00": true,
		"\x92\x81\xa1k\x91\x81\xa1l\x01\x81\xa1k\x91\x81\x05\x01":          false,
		"\xde\x00\x01\xd9\x01k\xdc\x00\x01\xdf\x00\x00\x00\x01\xff\x00":    false,
		"\xde\x00\x01\xd9\x01k\xdc\x00\x01\xdf\x00\x00\x00\x01\xa0\x00":    true,
	} {
		if err := Check([]byte(text), Default); err != nil {
			t.Errorf("%x: %v", text, err)
		}
		if got := TextKeys([]byte(text)); got != want {
			t.Errorf("%x: %v, expected %v", text, got, want)
		}
	}
}
