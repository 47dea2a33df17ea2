package world

import (
	"encoding/binary"
	"math/bits"
	"time"

	"weft/topology"
)

// trace is a running hash over every packet that a host sent or was given,
// with the time and the host. It is no cryptographic one.
type trace struct {
	sum     uint64
	packets uint64
}

// kind is what happened to a packet.
type kind uint64

const (
	injected kind = iota
	delivered
	handed // to a kernel's TCP
)

func (t *trace) add(at time.Duration, host topology.NodeID, k kind, b []byte) {
	t.packets++
	sum := mix(t.sum, uint64(at))
	sum = mix(sum, uint64(host)<<2|uint64(k))
	sum = mix(sum, uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		sum = mix(sum, binary.LittleEndian.Uint64(b))
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		sum = mix(sum, binary.LittleEndian.Uint64(last[:]))
	}
	t.sum = sum
}

// mix folds a word into a sum: both halves of a product, as wyhash does.
func mix(sum, word uint64) uint64 {
	hi, lo := bits.Mul64(sum^word^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	return hi ^ lo
}
