package link

import (
	"net/netip"
	"testing"
)

// superDevice is what package stack declares.
type superDevice interface {
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
	Write(bufs [][]byte, offset int) (n int, err error)
	MTU() int
	Close() error
	MaxSuper() int
	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
	WriteSuper(bufs [][]byte, offset int) (n int, err error)
	WriteParts(parts [][]byte) error
	Offloads() Offloads
	Drops() uint64
}

var _, _, _, _ superDevice = (*TUN)(nil), (*TUNQueue)(nil), (*Packet)(nil), (*Duplex)(nil)

// transfer sends payloads of the sizes from tx to rx and checks every byte and
// checksum that arrives. every-th packet goes by WriteParts.
func transfer(t *testing.T, f *traffic, tx, rx superDevice, sizes []int, batch, every int) {
	t.Helper()
	defer unhang(rx)()
	const offset = SuperHeadroom
	out, _ := buffers(batch, offset+MaxSuperLen)
	in, got := buffers(batch, offset+MaxSuperLen)
	before := tx.Drops() + rx.Drops()
	for at := 0; at < len(sizes); at += batch {
		send := sizes[at:min(at+batch, len(sizes))]
		var bufs [][]byte
		for i, n := range send {
			b := f.packet(out[i], offset, n)
			if every == 0 || i%every != 0 {
				bufs = append(bufs, b)
				continue
			}
			write(t, tx, &bufs)
			if err := tx.WriteParts(inParts(b[offset-VnetHeaderLen:], f.headerLen(), i)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, tx, &bufs)
		for f.got < f.sent {
			n, err := rx.ReadSuper(in, got, offset)
			if err != nil {
				t.Fatalf("%v to %v, protocol %d, payloads from %d to %d bytes: %d of %d bytes: %v (%d drops sending, %d receiving)", f.src, f.dst, f.proto, send[0], send[len(send)-1], f.got, f.sent, err, tx.Drops(), rx.Drops())
			}
			for i := range n {
				h := ParseVnetHeader((*[VnetHeaderLen]byte)(in[i][offset-VnetHeaderLen:]))
				if _, err := f.receive(h, in[i][offset:offset+got[i]]); err != nil {
					t.Fatalf("%v to %v, protocol %d, payloads from %d to %d bytes: %v", f.src, f.dst, f.proto, send[0], send[len(send)-1], err)
				}
			}
		}
	}
	if d := tx.Drops() + rx.Drops() - before; d != 0 {
		t.Errorf("%d drops", d)
	}
}

func write(t *testing.T, tx superDevice, bufs *[][]byte) {
	t.Helper()
	if n, err := tx.WriteSuper(*bufs, SuperHeadroom); n != len(*bufs) || err != nil {
		t.Fatalf("WriteSuper: %d of %d, %v; %v", n, len(*bufs), err, tx.Offloads())
	}
	*bufs = (*bufs)[:0]
}

// inParts cuts a packet with its VnetHeader behind the headers and then
// somewhere, with an empty part between.
func inParts(b []byte, headers, seed int) [][]byte {
	head, rest := b[:VnetHeaderLen+headers], b[VnetHeaderLen+headers:]
	cut := seed * 977 % (len(rest) + 1)
	return [][]byte{head, rest[:cut], nil, rest[cut:]}
}

// sizesTo returns all payload sizes from 1 to max at short distances, and every
// one at the ends and around the multiples of mss.
func sizesTo(max, mss, step int) (sizes []int) {
	for n := 1; n <= max; n++ {
		if r := n % mss; n%step == 0 || n < 200 || n > max-50 || r <= 1 || r == mss-1 {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// flows are all kinds, from and to the addresses given.
func flows(src4, dst4, src6, dst6 netip.Addr) map[string]*traffic {
	all := make(map[string]*traffic)
	for name, proto := range map[string]byte{"TCP": 6, "UDP": 17, "ICMP": 1} {
		all[name+" IPv4"] = &traffic{src: src4, dst: dst4, proto: proto, port: 5001, mss: 1448}
		if proto == 1 {
			proto = 58
		}
		all[name+" IPv6"] = &traffic{src: src6, dst: dst6, proto: proto, port: 5001, mss: 1428}
	}
	return all
}

// maxPayload is how much one packet of f may carry: super-segments of UDP have
// at most 128 segments, ICMP has none.
func (f *traffic) maxPayload() int {
	if f.proto == 1 || f.proto == 58 {
		return f.mss
	}
	if f.src.Is6() {
		return MaxSuperLen - f.headerLen() - 40
	}
	return MaxSuperLen - f.headerLen()
}
