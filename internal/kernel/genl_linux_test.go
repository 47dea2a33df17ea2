package kernel

import (
	"bytes"
	"testing"
)

// The last attribute need not be padded, and no bytes are a panic.
func FuzzParseAttrs(f *testing.F) {
	unpadded := []byte{8, 0, 1, 0, 1, 2, 3, 4, 5, 0, 2, 0, 9}
	attrs, err := ParseAttrs(unpadded)
	if err != nil || len(attrs) != 2 || !bytes.Equal(attrs[0].Value, []byte{1, 2, 3, 4}) || attrs[1].Attr.Type != 2 || !bytes.Equal(attrs[1].Value, []byte{9}) {
		f.Fatalf("%+v, %v", attrs, err)
	}
	f.Add(unpadded)
	f.Add([]byte{5, 0, 1, 0, 9})
	f.Add([]byte{3, 0, 1, 0})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		attrs, err := ParseAttrs(b)
		sum := 0
		for _, a := range attrs {
			sum += len(a.Value)
		}
		if err != nil && attrs != nil || sum > len(b)+3 {
			t.Errorf("%v: %d bytes of values, %v", b, sum, err)
		}
	})
}
