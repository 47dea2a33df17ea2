package link

import "testing"

// TestDevices_allocateNothing covers all calls of the TUN and the packet socket,
// with and without offloads.
func TestDevices_allocateNothing(t *testing.T) {
	for _, offload := range []bool{true, false} {
		c := newCable(t)
		tun := behind(t, TUNConfig{Offload: offload})
		far := c.openFar(t, PacketConfig{Gateway: near4})
		for _, dir := range []struct {
			name   string
			tx, rx superDevice
			f      *traffic
		}{
			{"TUN to packet socket", tun, far, &traffic{src: behind4, dst: far4, proto: 17, port: 5001, mss: 1448}},
			{"packet socket to TUN", far, tun, &traffic{src: far4, dst: behind4, proto: 17, port: 5001, mss: 1448}},
		} {
			size := dir.f.mss
			if dir.tx.MaxSuper() > 0 {
				size = 20000
			}
			super := dir.f.packet(make([]byte, MaxSuperLen), SuperHeadroom, size)
			plain := dir.f.packet(make([]byte, MaxSuperLen), SuperHeadroom, 100)[SuperHeadroom:]
			parts := inParts(super[SuperHeadroom-VnetHeaderLen:], dir.f.headerLen(), 3)
			batch, one := [][]byte{super, super}, [][]byte{plain}
			in, sizes := buffers(16, SuperHeadroom+MaxSuperLen)
			defer unhang(dir.rx)()
			round := func() {
				dir.tx.WriteSuper(batch, SuperHeadroom)
				dir.tx.WriteParts(parts)
				for got := 0; got < 3*size; {
					n, err := dir.rx.ReadSuper(in, sizes, SuperHeadroom)
					if err != nil {
						t.Fatal(err)
					}
					for i := range n {
						got += sizes[i] - dir.f.headerLen()
					}
				}
				dir.tx.Write(one, 0)
				if _, err := dir.rx.Read(in, sizes, 0); err != nil {
					t.Fatal(err)
				}
			}
			if allocs := testing.AllocsPerRun(200, round); allocs != 0 {
				t.Errorf("%s, offload %v: %v allocations", dir.name, offload, allocs)
			}
		}
	}
}
