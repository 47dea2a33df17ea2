package failover

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

// nested are the first 40 bytes of an IP-in-IP packet.
func nested(outer, src, dst netip.Addr, protocol byte) []byte {
	b := make([]byte, 64)
	b[0], b[9], b[20], b[29] = 0x45, 4, 0x45, protocol
	copy(b[12:], src.AsSlice())
	copy(b[16:], outer.AsSlice())
	copy(b[32:], src.AsSlice())
	copy(b[36:], dst.AsSlice())
	return b
}

func TestParsePath(t *testing.T) {
	whole := parse(t, "fat-tree:k=4")
	bounce, src, dst := whole.Node(whole.Paths(0, 15).Bounce(2)).Addr, whole.EmbeddedAddr(0), whole.EmbeddedAddr(15)
	good := nested(bounce, src, dst, 6)
	c, ok := parsePath(whole, good)
	if want := (path{pair{0, 15}, bounce}); !ok || c != want {
		t.Errorf("%v %v, want %v", c, ok, want)
	}
	for name, b := range map[string][]byte{
		"short":          good[:39],
		"outer options":  append([]byte{0x46}, good[1:]...),
		"not from hosts": nested(bounce, bounce, dst, 6),
		"to nobody":      nested(bounce, src, netip.MustParseAddr("192.0.2.1"), 6),
		"empty":          nil,
	} {
		if c, ok := parsePath(whole, b); ok {
			t.Errorf("%s: %v", name, c)
		}
	}
}

func TestEpisode_countsOnlyWhatNeedsTheLink(t *testing.T) {
	whole := parse(t, "fat-tree:k=4")
	pairs := []pair{{0, 15}, {4, 15}, {0, 5}}
	down, _ := linksOf(whole, "a3.2-c1.1") // the pod of host 15
	h := newHole(whole, pairs, down...)
	core := whole.Node(whole.Link(down[0]).B).Addr
	since := time.Unix(100, 0)
	at := func(ms int) time.Time { return since.Add(time.Duration(ms) * time.Millisecond) }
	e := newEpisode(h, since, at(50), nil)
	if e.late != 0 {
		t.Error("closed before anything was sent")
	}
	for _, s := range []sighting{
		{path{pair{0, 15}, core}, at(-3)}, // before
		{path{pair{0, 15}, core}, at(9)},
		{path{pair{4, 15}, core}, at(4)}, // taps are read one after the other
		{path{pair{0, 5}, core}, at(20)}, // may go on, but this is too early to show it
		{path{pair{0, 15}, whole.Node(whole.Paths(0, 15).Bounce(1)).Addr}, at(30)},
	} {
		e.see(s)
	}
	if e.packets != 2 || e.late != 9*time.Millisecond {
		t.Errorf("%d packets, the last after %v", e.packets, e.late)
	}
	if len(e.kept) != 0 || len(h.others) != 1 {
		t.Errorf("kept %v of %v", e.kept, h.others)
	}
	e.see(sighting{path{pair{0, 5}, core}, at(60)})
	if len(e.kept) != 1 {
		t.Errorf("kept %v", e.kept)
	}
}

func TestParseTimespec(t *testing.T) {
	b := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 1_700_000_000), 123_456_789)
	got, err := parseTimespec(b)
	if want := time.Unix(1_700_000_000, 123_456_789); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := parseTimespec(b[:15]); err == nil {
		t.Error("a short one was read")
	}
}
