package dataplane

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/flowcell"
)

// Checksums are right where netstack finds them right, and wrong where one bit is.
func TestCheck_checksumsAreNetstacks(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 3000 {
		b := dataPacket(uint16(i), rng.IntN(200))
		at := 20
		if i%2 == 1 {
			b, at = append(make([]byte, 40), b[20:]...), 40
			b[0], b[6] = 0x60, flowcell.ProtoTCP
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			for j := 8; j < 40; j++ {
				b[j] = byte(rng.Uint32())
			}
			b[8] = 0xfd
		}
		for j := at + 20; j < len(b); j++ {
			b[j] = byte(rng.Uint32())
		}
		src, dst := tcpip.AddrFrom16Slice(b[8:24]), tcpip.AddrFrom16Slice(b[24:40])
		if at == 20 {
			src, dst = tcpip.AddrFrom4Slice(b[12:16]), tcpip.AddrFrom4Slice(b[16:20])
		}
		tcp := header.TCP(b[at:])
		tcp.SetChecksum(0)
		pseudo := header.PseudoHeaderChecksum(header.TCPProtocolNumber, src, dst, uint16(len(tcp)))
		tcp.SetChecksum(^tcp.CalculateChecksum(checksum.Checksum(tcp.Payload(), pseudo)))
		if !validTCP(b) || !validIP(b) {
			t.Fatalf("seed %d: %x is refused", seed, b)
		}
		b[at+rng.IntN(len(b)-at)] ^= 1 << rng.IntN(8)
		if len(b) >= at+20 && b[at+12]>>4 == 5 && validTCP(b) {
			t.Fatalf("seed %d: %x is taken", seed, b)
		}
		if at == 20 {
			b[rng.IntN(20)] ^= 1 << rng.IntN(8)
			if b[0] == 0x45 && validIP(b) {
				t.Fatalf("seed %d: the header %x is taken", seed, b[:20])
			}
		}
	}
}
