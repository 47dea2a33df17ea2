package fabric

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/policy"
)

// What TCP sends again after a timeout does not follow into the hole what was
// lost: one segment, sent 30 times 20 ms apart, is spread over all paths.
func TestOffload_resentAfterTimeoutsTakesAllPaths(t *testing.T) {
	s := newCutting(t, policy.Options{})
	segment := s.numberedSegment(0x1234)
	paths := make(map[uint32]int)
	for range 30 {
		run := ebpf.RunOptions{Data: frameOf(segment), DataOut: make([]byte, 512)}
		if _, err := s.offload.prog.Run(&run); err != nil {
			t.Fatal(err)
		}
		paths[binary.BigEndian.Uint32(run.DataOut[ethernetHeader+16:])]++
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%d paths", len(paths))
	if len(paths) != 4 {
		t.Errorf("one segment, sent again 29 times after a timeout each, takes %d paths, want 4", len(paths))
	}
}
