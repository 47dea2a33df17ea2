package encap

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"
)

var (
	feedbackSecret = bytes.Repeat([]byte{7}, 32)
	feedbackTold   = Feedback{Level: 42, Queue: 61_234, Packet: [28]byte(unhex(
		"450005dc123440003f0600000a0000020a030103" + "9c40005012345678"))}
)

func feedbackKeys(key uint8) []byte {
	if key == 3 {
		return feedbackSecret
	}
	return nil
}

func TestFeedback_bytes(t *testing.T) {
	b, err := AppendFeedback([]byte{1}, feedbackTold, 0, nil)
	if want := "01" + "77667163" + "01002a00" + "0000ef32" + "450005dc123440003f0600000a0000020a030103" + "9c40005012345678"; err != nil || hex.EncodeToString(b) != want {
		t.Errorf("%x, %v; want %s", b, err, want)
	}
	got, err := ParseFeedback(append(b[1:], 9), nil)
	if err != nil || got != feedbackTold {
		t.Errorf("%+v, %v", got, err)
	}
	if from, to := netip.MustParseAddrPort("10.0.0.2:40000"), netip.MustParseAddrPort("10.3.1.3:80"); got.Source() != from || got.Dest() != to || got.Seq() != 0x12345678 {
		t.Errorf("%v to %v, %#x", got.Source(), got.Dest(), got.Seq())
	}
}

// A receiver with keys believes only who has one; a change of any byte is noticed.
func TestFeedback_signed(t *testing.T) {
	signed, err := AppendFeedback(nil, feedbackTold, 3, feedbackSecret)
	if err != nil || len(signed) != MaxFeedbackLen {
		t.Fatalf("%x, %v", signed, err)
	}
	for _, secret := range []func(uint8) []byte{nil, feedbackKeys} {
		if got, err := ParseFeedback(signed, secret); err != nil || got != feedbackTold {
			t.Errorf("%+v, %v", got, err)
		}
	}
	unsigned, _ := AppendFeedback(nil, feedbackTold, 0, nil)
	other, _ := AppendFeedback(nil, feedbackTold, 4, feedbackSecret)
	wrong, _ := AppendFeedback(nil, feedbackTold, 3, bytes.Repeat([]byte{8}, 32))
	for i, c := range []struct {
		b    []byte
		want error
	}{{unsigned, ErrFeedbackKey}, {other, ErrFeedbackKey}, {wrong, ErrFeedbackMAC}, {signed[:71], ErrTruncated}, {signed[:39], ErrTruncated}, {nil, ErrNotFeedback}} {
		if got, err := ParseFeedback(c.b, feedbackKeys); !errors.Is(err, c.want) || got != (Feedback{}) {
			t.Errorf("%d: %+v, %v; want %v", i, got, err, c.want)
		}
	}
	for i := range signed {
		b := bytes.Clone(signed)
		b[i] ^= 1
		if _, err := ParseFeedback(b, feedbackKeys); err == nil {
			t.Errorf("byte %d may be changed", i)
		}
	}
	for _, level := range []uint8{0, 64} {
		f := feedbackTold
		f.Level = level
		if _, err := AppendFeedback(nil, f, 0, nil); !errors.Is(err, ErrFeedbackLevel) {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

func FuzzParseFeedback(f *testing.F) {
	for _, key := range []uint8{0, 3} {
		b, _ := AppendFeedback(nil, feedbackTold, key, feedbackSecret)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseFeedback(b, nil)
		if err != nil {
			if got != (Feedback{}) {
				t.Fatalf("%v, but %+v", err, got)
			}
			return
		}
		again, err := AppendFeedback(nil, got, 0, nil)
		want := bytes.Clone(b[:feedbackLen])
		want[5], want[7] = 0, 0
		if err != nil || !bytes.Equal(again, want) {
			t.Fatalf("%x became %x, %v", b, again, err)
		}
		if _, err := ParseFeedback(b, feedbackKeys); err == nil && b[5] != 3 {
			t.Fatal("believed without a key")
		}
	})
}
