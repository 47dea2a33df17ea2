package stack

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"weft/encap"
	"weft/link"
)

// cable is an end of a cable in memory that takes outer headers off.
type cable struct{ *link.Memory }

func (c cable) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	n, err = c.Memory.Read(bufs, sizes, offset)
	for i := range n {
		b := bufs[i][offset : offset+sizes[i]]
		inner, err := encap.Decapsulate(b)
		if err != nil {
			return 0, err
		}
		sizes[i] = copy(b, inner)
	}
	return n, err
}

// Many connections at once, each for one flow, over a cable that loses nothing: all that is
// sent again, is for nothing.
//
//	go test ./stack -run - -bench Host_connections -benchtime 3000x
func BenchmarkHost_connections(b *testing.B) {
	const flow = 200_000 // bytes
	for _, n := range []int{10, 300, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			near, far := link.NewPair(0, 1<<20)
			client := mustNew(b, Config{Address: addrA, Topology: fatTree, Device: cable{near}})
			server := mustNew(b, Config{Address: addrB, Topology: fatTree, Device: cable{far}})
			b.Cleanup(func() { client.Close(); server.Close() })
			l, err := server.Listen("tcp", ":80")
			if err != nil {
				b.Fatal(err)
			}
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					go func() {
						defer c.Close()
						io.Copy(io.Discard, c)
					}()
				}
			}()
			b.ResetTimer()
			var begun atomic.Int64
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					data := make([]byte, flow)
					for begun.Add(1) <= int64(b.N) {
						if err := oneFlow(client, l.Addr(), data); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.SetBytes(flow)
			c, s := client.Stats().TCP, server.Stats().TCP
			b.ReportMetric(float64(c.Timeouts+s.Timeouts)/float64(b.N), "timeouts/flow")
			b.ReportMetric(float64(c.Retransmits+s.Retransmits)/float64(b.N), "resent/flow")
			if d := near.Drops() + far.Drops(); d > 0 {
				b.Errorf("the cable dropped %d packets", d)
			}
		})
	}
}

// oneFlow sends data by a connection of its own and waits until all has been read.
func oneFlow(h *Host, to net.Addr, data []byte) error {
	c, err := h.Dial("tcp", to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(data); err != nil {
		return err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}
