package link

import (
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// A device knows how much of what was written waits at its uplink, and says so when that is
// full. What has left does not wait.
func TestPacket_holdsWhatWaits(t *testing.T) {
	c := newCable(t)
	const rate, room = 125_000, 30_000 // bytes a second, and in the queue
	err := netlink.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: nearIndex, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       rate, Limit: room, Buffer: netlink.Xmittime(rate, 3200),
	})
	if err != nil {
		t.Skipf("no token bucket: %v", err)
	}
	near := c.openNear(t, PacketConfig{Gateway: far4})
	if near.Holds(1) {
		t.Error("something waits before anything was sent")
	}
	flow := &traffic{src: near4, dst: far4, proto: 6, port: 5001, mss: 1448}
	packet := func() []byte {
		return flow.packet(make([]byte, 2000), SuperHeadroom, 1448)[SuperHeadroom-VnetHeaderLen:]
	}
	taken := 0
	for ; taken < 100; taken++ {
		if err := near.WriteParts([][]byte{packet()}); err != nil {
			break
		}
	}
	// Two leave at once, and up to 20 wait.
	if taken < room/1514 || taken > room/1514+4 {
		t.Errorf("%d packets were taken", taken)
	}
	if least := (taken - 3) * 1500; !near.Holds(least) {
		t.Errorf("%d bytes do not wait after %d packets", least, taken)
	}
	if near.Holds(1 << 20) {
		t.Error("a megabyte waits")
	}
	for deadline := time.Now().Add(time.Minute); near.Holds(1); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("packets wait for ever")
		}
	}
	if err := near.WriteParts([][]byte{packet()}); err != nil {
		t.Errorf("with an empty queue: %v", err)
	}
	near.Close()
	if near.Holds(0) {
		t.Error("a closed device holds something")
	}
}
