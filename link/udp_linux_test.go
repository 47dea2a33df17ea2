package link

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestUDP_trainsStayWhole(t *testing.T) {
	for _, listen := range []netip.AddrPort{loopback4, loopback6} {
		tx, rx := openUDP(t, UDPConfig{Listen: listen}), openUDP(t, UDPConfig{Listen: listen})
		if !tx.Offloads().Segment || !rx.Offloads().GRO {
			t.Skipf("%v, %v", tx.Offloads(), rx.Offloads())
		}
		const size, total = 1400, 44*1400 - 1
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{make([]byte, total)}, size); err != nil {
			t.Fatal(err)
		}
		box := newMailbox(rx, 4)
		if n, err := box.receive(); n != 1 || err != nil || box.sizes[0] != total || box.segs[0] != size {
			t.Errorf("received %d, %v: %d bytes in datagrams of %d; want one train of %d in datagrams of %d",
				n, err, box.sizes[0], box.segs[0], total, size)
		}
	}
}

func TestUDP_carriesTheTOSByte(t *testing.T) {
	for _, listen := range []netip.AddrPort{loopback4, loopback6} {
		tx, rx := openUDP(t, UDPConfig{Listen: listen}), openUDP(t, UDPConfig{Listen: listen})
		box := newMailbox(rx, 4)
		for tos := range 256 {
			if err := tx.Send(0, rx.LocalAddr(), byte(tos), [][]byte{make([]byte, 300)}, 100); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got := box.next(t).tos; got != byte(tos) {
					t.Fatalf("%v: TOS %#x became %#x", listen, tos, got)
				}
			}
		}
		if !rx.Offloads().ECN {
			t.Error("Offloads denies ECN")
		}
	}
}

// setOption sets an option of the sockets that send.
func setOption(t *testing.T, u *UDP, level, option, value int) {
	t.Helper()
	for i := range u.paths {
		if err := unix.SetsockoptInt(u.paths[i].fd, level, option, value); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUDP_fallsBackWhenTheKernelRefusesTrains(t *testing.T) {
	tx, rx := openUDP(t, UDPConfig{Listen: loopback4}), openUDP(t, UDPConfig{Listen: loopback4})
	if !tx.Offloads().Segment {
		t.Skip(tx.Offloads())
	}
	// The kernel refuses to segment on sockets without checksums: a refusal at
	// run time, and a real one.
	setOption(t, tx, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
	sendsExactly(t, tx, rx)
	o := tx.Offloads()
	if o.Segment || o.Refused != 1 || !strings.Contains(o.Fallback, "one by one") {
		t.Errorf("after a refusal: %v", o)
	}
}

func TestUDP_manyPartsAreNoRefusal(t *testing.T) {
	tx, rx := openUDP(t, UDPConfig{Listen: loopback4}), openUDP(t, UDPConfig{Listen: loopback4})
	b := noise(rand.New(rand.NewPCG(1, 1)), 2*maxIovecs)
	var parts [][]byte
	for i := range b {
		parts = append(parts, b[i:i+1])
	}
	if err := tx.Send(0, rx.LocalAddr(), 0, parts, 1000); err != nil {
		t.Fatal(err)
	}
	box := newMailbox(rx, 1)
	var got []byte
	for len(got) < len(b) {
		got = append(got, box.next(t).bytes...)
	}
	if o := tx.Offloads(); !bytes.Equal(got, b) || o.Refused != 0 {
		t.Errorf("bytes equal: %v; %v", bytes.Equal(got, b), o)
	}
}

func TestRefusal_tellsAMissingOffloadFromAFullQueue(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINVAL, unix.EOPNOTSUPP, 524} {
		if !refusal(errno) || noRoom(errno) {
			t.Errorf("%v is not taken for a refusal", errno)
		}
	}
	for _, errno := range []unix.Errno{unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM} {
		if refusal(errno) || !noRoom(errno) {
			t.Errorf("%v is not taken for a drop", errno)
		}
	}
	for _, errno := range []unix.Errno{0, unix.EMSGSIZE, unix.EPERM, unix.ENETUNREACH} {
		if refusal(errno) || noRoom(errno) {
			t.Errorf("%v is taken for a refusal or a drop", errno)
		}
	}
}

func TestUDP_countsWhatDoesNotFit(t *testing.T) {
	tx, rx := openUDP(t, UDPConfig{Listen: loopback4}), openUDP(t, UDPConfig{Listen: loopback4})
	for _, b := range []string{"longer than the buffer", "fits"} {
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{[]byte(b)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	box := newMailbox(rx, 2)
	whole := box.bufs[0]
	box.bufs[0] = whole[:8]
	if n, err := box.receive(); n != 2 || err != nil || box.sizes[0] != 0 || box.sizes[1] != 4 || rx.Drops() != 1 {
		t.Errorf("%d, %v, sizes %v, %d drops", n, err, box.sizes, rx.Drops())
	}
	box.bufs[0] = whole
	// What overflows the socket's buffer is told with what comes after it.
	if err := control(rx.receiver.conn, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	}); err != nil {
		t.Fatal(err)
	}
	before, sent := rx.Drops(), uint64(0)
	for received := 0; received < 2; {
		for range 50 {
			if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{make([]byte, 1400)}, 0); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		n, err := box.receive()
		if err != nil {
			t.Fatal(err)
		}
		received += n
	}
	if d := rx.Drops() - before; d == 0 || d >= sent {
		t.Errorf("%d drops of %d", d, sent)
	}
}

func TestUDP_allocatesNothing(t *testing.T) {
	for _, listen := range []netip.AddrPort{loopback4, loopback6} {
		tx, rx := openUDP(t, UDPConfig{Listen: listen}), openUDP(t, UDPConfig{Listen: listen})
		box := newMailbox(rx, 8)
		parts := scatter(rand.New(rand.NewPCG(2, 2)), make([]byte, 60_000), 40)
		to := rx.LocalAddr()
		for _, segment := range []bool{true, false} {
			tx.segment.Store(segment)
			allocs := testing.AllocsPerRun(100, func() {
				if err := tx.Send(3, to, 2, parts, 1400); err != nil {
					t.Fatal(err)
				}
				for got := 0; got < 60_000; {
					n, err := box.receive()
					if err != nil {
						t.Fatal(err)
					}
					for _, size := range box.sizes[:n] {
						got += size
					}
				}
			})
			if allocs != 0 {
				t.Errorf("%v, segmenting %v: %v allocations a train", listen, segment, allocs)
			}
		}
	}
}

func TestUDP_keepsNoReferenceToTheCallersBytes(t *testing.T) {
	tx, rx := openUDP(t, UDPConfig{Listen: loopback4, Paths: 1}), openUDP(t, UDPConfig{Listen: loopback4, Paths: 1})
	if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{make([]byte, 500)}, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := newMailbox(rx, 8).receive(); err != nil {
		t.Fatal(err)
	}
	p := &tx.paths[0]
	for _, v := range p.iovecs[:cap(p.iovecs)] {
		if v.Base != nil {
			t.Fatal("Send has kept a reference")
		}
	}
	for _, v := range rx.receiver.iovecs {
		if v.Base != nil {
			t.Fatal("Receive has kept a reference")
		}
	}
}

func TestUDPOffloads_tellWhatPeopleNeedToKnow(t *testing.T) {
	o := UDPOffloads{Segment: true, GRO: true, ECN: true, ReceiveBuffer: 8 << 20, Refused: 2, Fallback: "why"}
	if s, want := o.String(), "udp: segment gro ecn, receive buffer 8192 KiB, 2 trains refused (why)"; s != want {
		t.Errorf("%q, want %q", s, want)
	}
	if s := (UDPOffloads{}).String(); s != "udp: no offloads" {
		t.Errorf("%q", s)
	}
	u := openUDP(t, UDPConfig{Listen: loopback4, ZeroChecksum: true})
	if o := u.Offloads(); o.Segment || !o.ZeroChecksum || o.Fallback == "" || o.ReceiveBuffer <= 0 {
		t.Errorf("without checksums: %v", o)
	}
}

// benchmarkUDP sends flowcells and receives them on the same core; Gbit/s are
// those of a core that does both.
func benchmarkUDP(b *testing.B, c UDPConfig, size int, segment bool) {
	tx, rx := openUDP(b, c), openUDP(b, c)
	tx.segment.Store(segment && tx.segment.Load())
	const total = 60_000
	parts, to := [][]byte{make([]byte, total)}, rx.LocalAddr()
	box := newMailbox(rx, 8)
	b.SetBytes(total)
	for b.Loop() {
		if err := tx.Send(0, to, 0, parts, size); err != nil {
			b.Fatal(err)
		}
		for got := 0; got < total; {
			n, err := box.receive()
			if err != nil {
				b.Fatal(err)
			}
			for _, size := range box.sizes[:n] {
				got += size
			}
		}
	}
	b.ReportMetric(float64(b.N)*total*8/float64(b.Elapsed().Nanoseconds()), "Gbit/s")
}

func BenchmarkUDP_flowcell(b *testing.B) {
	benchmarkUDP(b, UDPConfig{Listen: loopback4}, 1460, true)
}

func BenchmarkUDP_flowcellIPv6(b *testing.B) {
	benchmarkUDP(b, UDPConfig{Listen: loopback6}, 1440, true)
}

func BenchmarkUDP_oneByOne(b *testing.B) {
	benchmarkUDP(b, UDPConfig{Listen: loopback4}, 1460, false)
}

func BenchmarkUDP_zeroChecksum(b *testing.B) {
	benchmarkUDP(b, UDPConfig{Listen: loopback4, ZeroChecksum: true}, 1460, false)
}

func FuzzReadControl(f *testing.F) {
	tx := udpPath{length: unix.SizeofSockaddrInet4}
	n := tx.putControl(0x2e, 1400)
	f.Add(unsafe.Slice((*byte)(unsafe.Pointer(&tx.control[0])), n), n)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, receiveSpace)
	f.Fuzz(func(t *testing.T, b []byte, length int) {
		var control [receiveSpace / 8]uint64
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&control[0])), receiveSpace), b)
		if length < 0 || length > receiveSpace {
			return // the kernel writes no more than it has room for
		}
		var r udpReceiver
		seg, tos := r.readControl(control[:], length)
		if length < unix.CmsgLen(1) && (seg != 0 || tos != 0) {
			t.Fatalf("%d bytes of %x: %d, %d", length, b, seg, tos)
		}
	})
}
