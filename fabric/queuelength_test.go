package fabric

import (
	"encoding/json"
	"testing"
	"time"
)

// A time is in proportion to the rate, and bytes are bytes.
func TestQueueLength(t *testing.T) {
	for text, want := range map[string]struct {
		length       QueueLength
		at20M, at10G int
	}{
		"0":     {QueueLength{}, 0, 0},
		"30000": {QueueLength{Bytes: 30000}, 30000, 30000},
		"80us":  {QueueLength{Time: 80 * time.Microsecond}, 200, 100_000},
		"1ns":   {QueueLength{Time: 1}, 1, 1},
	} {
		var got QueueLength
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want.length {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if a, b := got.At(20e6), got.At(10e9); a != want.at20M || b != want.at10G {
			t.Errorf("%s: %d bytes at 20 Mbit/s, %d at 10 Gbit/s", text, a, b)
		}
		b, err := json.Marshal(got)
		var back QueueLength
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back != got {
			t.Errorf("%s: %s is %v again, %v", text, b, back, err)
		}
		for _, rate := range []float64{20e6, 10e9} {
			p, err := MeterPort{Name: "p0", RateBits: rate, ECN: got}.complete()
			if err != nil || p.ECNBytes != got.At(rate) || p.state().at(0).ECNBytes != uint64(got.At(rate)) {
				t.Errorf("%s at %g bit/s: %+v, %v", text, rate, p, err)
			}
		}
	}
	for _, text := range []string{"", "65", "us", "-", "1.5"} {
		var q QueueLength
		if err := q.UnmarshalText([]byte(text)); (err == nil) != (text == "65") {
			t.Errorf("%q: %+v, %v", text, q, err)
		}
	}
}
