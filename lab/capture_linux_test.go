package lab

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// capture is a ring of copies of the packets that came in at a port of a lab's node. A
// packet socket without a ring shares the bytes with the kernel's own packet until they are
// read. A kernel that forwards by labels moves the labels up in place, so such a socket
// would see the next switch's labels.
type capture struct {
	fd   int
	ring []byte
	next int // frame

	length int // of the packet read last, of which the ring has the first 2 KB
}

const (
	captureFrame  = 2048
	captureFrames = 32
)

func openCapture(t *testing.T, l *Lab, id topology.NodeID, port int) *capture {
	t.Helper()
	c := new(capture)
	if err := l.Do(id, func() error { return c.open(fmt.Sprintf(fabric.DefaultPortFormat, port)) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// open binds last: whenever a socket that takes packets changes, the kernel waits
// until nobody uses it.
func (c *capture) open(device string) error {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	if c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	req := unix.TpacketReq{Block_size: captureFrames * captureFrame, Block_nr: 1, Frame_size: captureFrame, Frame_nr: captureFrames}
	err = cmp.Or(unix.SetsockoptInt(c.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2),
		unix.SetsockoptTpacketReq(c.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req))
	if err == nil {
		c.ring, err = unix.Mmap(c.fd, 0, captureFrames*captureFrame, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		err = unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: kerneltest.Htons(unix.ETH_P_ALL), Ifindex: dev.Index})
	}
	if err != nil {
		c.close()
	}
	return err
}

func (c *capture) close() {
	if c.ring != nil {
		unix.Munmap(c.ring)
	}
	unix.Close(c.fd)
}

// read returns the next unicast IP packet that came in, or nil when there has been none
// for so long.
func (c *capture) read(t *testing.T, wait time.Duration) []byte {
	t.Helper()
	for {
		f := c.ring[c.next*captureFrame:][:captureFrame]
		if binary.NativeEndian.Uint32(f)&unix.TP_STATUS_USER == 0 {
			fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(fds, int(wait.Milliseconds())); n == 0 {
				return nil
			} else if err != nil && err != unix.EINTR {
				t.Fatal(err)
			}
			continue
		}
		const addrAt, kindAt = 32, 10 // struct sockaddr_ll behind struct tpacket2_hdr
		length, size, at := int(binary.NativeEndian.Uint32(f[4:])), binary.NativeEndian.Uint32(f[8:]), binary.NativeEndian.Uint16(f[12:])
		frame, kind := bytes.Clone(f[at:][:size]), f[addrAt+kindAt]
		binary.NativeEndian.PutUint32(f, unix.TP_STATUS_KERNEL)
		c.next = (c.next + 1) % captureFrames
		protocol := binary.BigEndian.Uint16(frame[12:])
		// Multicast: the kernel tells routers of IPv6 what it listens to.
		multicast := protocol == unix.ETH_P_IPV6 && frame[kernel.EthernetHeader+24] == 0xff
		if kind != unix.PACKET_OUTGOING && (protocol == unix.ETH_P_IP || protocol == unix.ETH_P_IPV6) && !multicast {
			c.length = length - kernel.EthernetHeader
			return frame[kernel.EthernetHeader:]
		}
	}
}

// captures are those of all ports of a lab.
type captures map[topology.NodeID][]*capture

func openCaptures(t *testing.T, l *Lab) captures {
	t.Helper()
	s := make(captures)
	t.Cleanup(func() { // each takes the kernel some milliseconds
		var wg sync.WaitGroup
		for _, ports := range s {
			for _, c := range ports {
				wg.Go(c.close)
			}
		}
		wg.Wait()
	})
	for n := range l.Config.nodes() {
		err := l.Do(n.ID, func() error {
			for _, p := range l.Config.ports(n.ID) {
				c := new(capture)
				if err := c.open(fmt.Sprintf(fabric.DefaultPortFormat, p.Index)); err != nil {
					return err
				}
				s[n.ID] = append(s[n.ID], c)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// arrivals returns the headers of the packets with the payload that came to
// nodes, plain or with labels, without waiting.
func (s captures) arrivals(t *testing.T, payload []byte) map[topology.NodeID][][]byte {
	t.Helper()
	seen := make(map[topology.NodeID][][]byte)
	for id, ports := range s {
		for _, c := range ports {
			for p := c.read(t, 0); p != nil; p = c.read(t, 0) {
				// Not what the destination answers, which quotes the packet.
				if h, ok := bytes.CutSuffix(p, payload); ok && (len(h) == 20 || len(h) == 60) {
					seen[id] = append(seen[id], h)
				}
			}
		}
	}
	return seen
}
