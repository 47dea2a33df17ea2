package wire

import (
	"encoding/binary"
	"reflect"
	"testing"
)

// builder makes netlink messages.
func linkMessage(kind, flags uint16, index int32, state uint32, attrs ...any) []byte {
	b := make([]byte, messageHeader+linkHeader)
	binary.NativeEndian.PutUint32(b[messageHeader+4:], uint32(index))
	binary.NativeEndian.PutUint32(b[messageHeader+8:], state)
	for i := 0; i < len(attrs); i += 2 {
		var value []byte
		switch v := attrs[i+1].(type) {
		case string:
			value = append([]byte(v), 0)
		case uint32:
			value = binary.NativeEndian.AppendUint32(nil, v)
		}
		b = binary.NativeEndian.AppendUint16(b, uint16(attrHeader+len(value)))
		b = binary.NativeEndian.AppendUint16(b, uint16(attrs[i].(int)))
		b = append(b, value...)
		b = append(b, make([]byte, aligned(len(b))-len(b))...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags)
	return b
}

// collector is a linkListener.
type collector struct {
	links       []link
	lists       int
	interrupted bool
	errno       int32
}

func (c *collector) link(l link)             { c.links = append(c.links, l) }
func (c *collector) listed(interrupted bool) { c.lists++; c.interrupted = c.interrupted || interrupted }
func (c *collector) refused(errno int32)     { c.errno = errno }

func TestParseLinks(t *testing.T) {
	b := linkMessage(typeNewLink, 0, 7, carrier, attrName, "swp1", attrCarrierDowns, uint32(3))
	b = append(b, linkMessage(typeNewLink, 0, 8, carrier&^flagLowerUp, attrName, "swp2")...)
	b = append(b, linkMessage(typeNewLink, 0, 9, carrier&^flagRunning, attrName, "swp3")...)
	b = append(b, linkMessage(typeDelLink, 0, 7, 0, attrName, "swp1")...)
	bridge := linkMessage(typeDelLink, 0, 8, 0, attrName, "swp2")
	bridge[messageHeader] = 7 // AF_BRIDGE
	b = append(b, bridge...)
	done := make([]byte, 20)
	binary.NativeEndian.PutUint32(done, 20)
	binary.NativeEndian.PutUint16(done[4:], typeDone)
	binary.NativeEndian.PutUint16(done[6:], flagInterrupted)
	b = append(b, done...)
	var c collector
	parseLinks(b, &c)
	want := []link{{index: 7, name: "swp1", up: true, losses: 3}, {index: 8, name: "swp2"}, {index: 9, name: "swp3"}, {index: 7, name: "swp1", removed: true}}
	if len(c.links) != len(want) {
		t.Fatalf("links %+v", c.links)
	}
	for i := range want {
		if !reflect.DeepEqual(c.links[i], want[i]) {
			t.Errorf("link %d: %+v, want %+v", i, c.links[i], want[i])
		}
	}
	if c.lists != 1 || !c.interrupted {
		t.Errorf("lists %d, interrupted %v", c.lists, c.interrupted)
	}
	refusal := make([]byte, 20)
	binary.NativeEndian.PutUint32(refusal, 20)
	binary.NativeEndian.PutUint16(refusal[4:], typeError)
	code := int32(-16)
	binary.NativeEndian.PutUint32(refusal[16:], uint32(code))
	if parseLinks(refusal, &c); c.errno != -16 {
		t.Errorf("error %d", c.errno)
	}
}

func FuzzParseLinks(f *testing.F) {
	f.Add(linkMessage(typeNewLink, 0, 7, carrier, attrName, "swp1", attrCarrierDowns, uint32(3)))
	f.Add(append(linkMessage(typeDelLink, 2, 7, 0, attrName, "x"), 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c collector
		parseLinks(b, &c)
		for _, l := range c.links {
			if l.name == "" || len(l.name) > len(b) {
				t.Errorf("name %q", l.name)
			}
		}
		if len(c.links)+c.lists > len(b)/messageHeader {
			t.Errorf("%d messages in %d bytes", len(c.links)+c.lists, len(b))
		}
	})
}
