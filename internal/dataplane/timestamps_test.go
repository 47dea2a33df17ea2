package dataplane

import (
	"bytes"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// synWith is a SYN with options, whose checksums are right.
func synWith(options ...byte) []byte {
	b := append(dataPacket(1, 0), options...)
	ip, tcp := header.IPv4(b), header.TCP(b[20:])
	ip.SetTotalLength(uint16(len(b)))
	ip.SetChecksum(0)
	ip.SetChecksum(^ip.CalculateChecksum())
	tcp.SetDataOffset(uint8(20 + len(options)))
	tcp.SetFlags(uint8(header.TCPFlagSyn))
	tcp.SetChecksum(0)
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), uint16(len(tcp)))
	tcp.SetChecksum(^checksum.Checksum(tcp, sum))
	return b
}

func TestStripTimestamps_onlyThem(t *testing.T) {
	mss := []byte{2, 4, 5, 0xb4}
	ts := []byte{8, 10, 0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3}
	gone := bytes.Repeat([]byte{1}, 10)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name       string
		have, want []byte
	}{
		{"none", mss, mss},
		{"as Linux has it", join(mss, []byte{4, 2}, ts, []byte{1, 3, 3, 7}), join(mss, []byte{4, 2}, gone, []byte{1, 3, 3, 7})},
		{"at an odd place", join([]byte{1}, ts, []byte{1}), join([]byte{1}, gone, []byte{1})},
		{"behind the end", join([]byte{0, 0}, ts), join([]byte{0, 0}, ts)},
		{"of another length", []byte{8, 4, 1, 2}, []byte{8, 4, 1, 2}},
		{"cut off", []byte{1, 1, 8, 10}, []byte{1, 1, 8, 10}},
		{"no length", []byte{1, 1, 1, 8}, []byte{1, 1, 1, 8}},
		{"length 0", []byte{5, 0, 8, 10}, []byte{5, 0, 8, 10}},
	} {
		b := synWith(c.have...)
		StripTimestamps(b)
		if !bytes.Equal(b[40:], c.want) {
			t.Errorf("%s: %x becomes %x, want %x", c.name, c.have, b[40:], c.want)
		}
		if !validTCP(b) {
			t.Errorf("%s: the checksum is wrong", c.name)
		}
	}
}

func FuzzStripTimestamps(f *testing.F) {
	f.Add([]byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7})
	f.Add([]byte{1, 8, 10, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, options []byte) {
		if len(options) > 40 || len(options)%4 != 0 {
			return
		}
		b := synWith(options...)
		StripTimestamps(b)
		if !validTCP(b) {
			t.Fatalf("%x becomes %x with a wrong checksum", options, b[40:])
		}
		if header.ParseSynOptions(b[40:], false).TS && !header.ParseSynOptions(options, false).TS {
			t.Fatalf("%x becomes %x", options, b[40:])
		}
	})
}
