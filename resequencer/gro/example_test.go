package gro_test

import (
	"encoding/binary"
	"fmt"

	"weft/resequencer/gro"
)

// segment is a TCP packet of 500 bytes of payload.
func segment(seq uint32) []byte {
	b := make([]byte, 540)
	copy(b, "\x45\x00\x02\x1c\x00\x00\x40\x00\x40\x06\x24\xce\x0a\x00\x00\x02\x0a\x03\x01\x03")
	binary.BigEndian.PutUint32(b[24:], seq)
	b[32] = 5 << 4
	return b
}

// Packets in contiguous buffers are merged by copying payload behind payload.
func ExampleTrain() {
	arrived := [][]byte{segment(0), segment(500), segment(1000), segment(7000)}

	var train gro.Train
	out := make([]byte, 0, gro.MaxLength)
	send := func() {
		merged := train.Finish(out) // if not, out is a packet as it came
		fmt.Println(len(out), merged, train.Segments(), train.MSS())
	}
	for i, b := range arrived {
		if train.Add(b, 0) {
			out = append(out, b[train.HeaderLen():]...)
			continue
		}
		if i > 0 {
			send()
		}
		train.Start(b, 0)
		out = append(out[:0], b...)
	}
	send()
	// Output:
	// 1540 true 3 500
	// 540 false 1 500
}
