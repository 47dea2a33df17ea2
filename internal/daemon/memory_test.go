package daemon

import (
	"testing"
)

func TestWithin_aQuarterOfTheMemory(t *testing.T) {
	c := defaults()
	asked, err := c.Resequencer.config()
	if err != nil {
		t.Fatal(err)
	}
	if within(asked, 0) != asked || within(asked, 16<<30) != asked {
		t.Error("bounds that fit were changed")
	}
	for _, memory := range []int64{1, 1 << 20, 48 << 20, 64 << 20, 256 << 20} {
		got := within(asked, memory)
		if held := int64(2*got.TotalBytes + frameBytes*got.TotalPackets); memory >= 1<<20 && held > memory/4 {
			t.Errorf("%d MB: %d bytes may be held", memory>>20, held)
		}
		if got.FlowBytes > got.TotalBytes || got.PeerPackets > got.TotalPackets {
			t.Errorf("%d MB: %+v", memory>>20, got)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%d bytes: %v", memory, err)
		}
	}
}
