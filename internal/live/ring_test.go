package live

import (
	"testing"
	"time"
)

func TestRing(t *testing.T) {
	r := Ring{For: 10 * time.Second}
	frame := func(i int) *Frame {
		return &Frame{Seq: uint64(i), At: day.Add(time.Duration(i) * time.Second), Fabric: 1}
	}
	if r.Latest() != nil || r.Frame(1) != nil || r.At(day) != nil {
		t.Error("an empty ring has frames")
	}
	for i := 1; i <= 30; i++ {
		r.Add(frame(i))
	}
	if r.Len() != 11 || r.Latest().Seq != 30 || r.Frame(19) != nil || r.Frame(20).Seq != 20 || r.Evicted() != 0 {
		t.Errorf("%d frames up to %d, %d evicted", r.Len(), r.Latest().Seq, r.Evicted())
	}
	for at, want := range map[time.Duration]uint64{0: 20, 25 * time.Second: 25, 25*time.Second + 1: 25, time.Hour: 30} {
		if got := r.At(day.Add(at)).Seq; got != want {
			t.Errorf("at %v is frame %d, want %d", at, got, want)
		}
	}
	if s := r.Summaries(); len(s) != 11 || s[0].Seq != 20 {
		t.Errorf("summaries %v", s)
	}
	r.Bytes = 3 * frame(1).size()
	r.Add(frame(31))
	if r.Len() != 3 || r.Evicted() != 8 || r.bytes != 3*frame(1).size() { // 20 was old
		t.Errorf("%d frames of %d bytes, %d evicted; want 3 and 8", r.Len(), r.bytes, r.Evicted())
	}
	other := frame(32)
	other.Fabric = 2
	if r.Add(other); r.Len() != 1 {
		t.Errorf("%d frames of two fabrics", r.Len())
	}
}
