package socket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/internal/capture"
	"weft/internal/exitcode"
	"weft/internal/shortage"
)

const (
	// blockSize is the kernel's unit of what it hands over. A packet must fit.
	blockSize = 1 << 20
	frameSize = 1 << 11 // TPACKET_V3 needs one, and uses none
	// DefaultRing is how much a ring keeps until it is read, in bytes.
	DefaultRing = 16 << 20
	// retire is after how long a block that is not full is handed over.
	retire = 50 // milliseconds
	// maxSnap is the longest packet that a ring keeps whole.
	maxSnap = 1 << 18
)

// Config says what is seen.
type Config struct {
	Device string
	Name   string // of the capture's interface; "" is Device
	Snap   int    // bytes of each packet; 0 is all, up to 256 KB
	Ring   int    // bytes; 0 is DefaultRing
}

// Socket sees the packets of a device of the network namespace in which it was opened. It is
// not safe for concurrent use, but Close is.
type Socket struct {
	fd      int
	ring    []byte
	block   int
	name    string
	link    capture.Link
	seen    uint64
	dropped uint64
	stop    [2]int // a pipe
}

// Open opens a socket in the network namespace of the calling thread.
func Open(c Config) (*Socket, error) {
	dev, err := net.InterfaceByName(c.Device)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w; ip link lists devices", c.Device, err)
	}
	s := &Socket{fd: -1, name: c.Name, link: capture.LinkEthernet, stop: [2]int{-1, -1}}
	if s.name == "" {
		s.name = c.Device
	}
	if len(dev.HardwareAddr) == 0 && dev.Flags&net.FlagLoopback == 0 {
		s.link = capture.LinkIP
	}
	if err := s.open(c, dev.Index); err != nil {
		s.Close()
		if errors.Is(err, unix.EPERM) {
			err = exitcode.AsAbsent(fmt.Errorf("%w: CAP_NET_RAW is missing: run it as root, or setcap cap_net_raw+ep on the program", err))
		}
		return nil, shortage.Explain(fmt.Errorf("packet socket at %s: %w", c.Device, err))
	}
	return s, nil
}

// open binds last, so that the socket sees nothing of other devices.
func (s *Socket) open(c Config, index int) (err error) {
	if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return err
	}
	snap := c.Snap
	if snap <= 0 {
		snap = maxSnap
	}
	code, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: uint32(min(snap, maxSnap))}})
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(code))
	for i, x := range code {
		filter[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	if err = unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return err
	}
	ring := c.Ring
	if ring == 0 {
		ring = DefaultRing
	}
	blocks := max(2, ring/blockSize)
	req := unix.TpacketReq3{Block_size: blockSize, Block_nr: uint32(blocks), Frame_size: frameSize,
		Frame_nr: uint32(blocks * blockSize / frameSize), Retire_blk_tov: retire}
	if err = unix.SetsockoptTpacketReq3(s.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return err
	}
	if s.ring, err = unix.Mmap(s.fd, 0, blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	if err = unix.Pipe2(s.stop[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index})
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// Name is the name of the capture's interface.
func (s *Socket) Name() string { return s.name }

// Run hands packets to each until Stop is called. While the device is down there are none. each may keep the
// Record, but not its Bytes.
func (s *Socket) Run(each func(*capture.Record)) error {
	polled := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN | unix.POLLERR}, {Fd: int32(s.stop[0]), Events: unix.POLLIN}}
	for {
		block := s.ring[s.block*blockSize : (s.block+1)*blockSize]
		h := (*unix.TpacketBlockDesc)(unsafe.Pointer(&block[0]))
		if status(h)&unix.TP_STATUS_USER != 0 {
			s.read(block, each)
			release(h)
			s.block = (s.block + 1) % (len(s.ring) / blockSize)
			continue
		}
		if _, err := unix.Poll(polled, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		switch {
		case polled[1].Revents != 0:
			return nil
		case polled[0].Revents&unix.POLLERR != 0:
			// A device that goes down may come up again.
			if code, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 && unix.Errno(code) != unix.ENETDOWN {
				return fmt.Errorf("%s: %w", s.name, unix.Errno(code))
			}
		}
	}
}

// read hands over the packets of a block.
func (s *Socket) read(block []byte, each func(*capture.Record)) {
	h := (*unix.TpacketHdrV1)(unsafe.Pointer(&(*unix.TpacketBlockDesc)(unsafe.Pointer(&block[0])).Hdr[0]))
	at := int(h.Offset_to_first_pkt)
	for range h.Num_pkts {
		p := (*unix.Tpacket3Hdr)(unsafe.Pointer(&block[at]))
		from := at + int(p.Mac)
		ll := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&block[at+alignedHeader]))
		r := capture.Record{At: time.Unix(int64(p.Sec), int64(p.Nsec)), Interface: s.name, Out: ll.Pkttype == unix.PACKET_OUTGOING,
			Link: s.link, Bytes: block[from : from+int(p.Snaplen)], Length: int(p.Len)}
		s.seen++
		each(&r)
		at += int(p.Next_offset)
	}
}

// alignedHeader is where the address is behind a packet's header.
const alignedHeader = (unix.SizeofTpacket3Hdr + unix.TPACKET_ALIGNMENT - 1) &^ (unix.TPACKET_ALIGNMENT - 1)

// Seen is how many packets were handed over.
func (s *Socket) Seen() uint64 { return s.seen }

// Dropped is how many packets found no room in the ring.
func (s *Socket) Dropped() uint64 {
	if stats, err := unix.GetsockoptTpacketStatsV3(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		s.dropped += uint64(stats.Drops) // the kernel begins anew
	}
	return s.dropped
}

// Stop makes Run return. It may be called from any goroutine.
func (s *Socket) Stop() { unix.Write(s.stop[1], []byte{0}) }

// Close frees the socket, once Run has returned.
func (s *Socket) Close() error {
	for _, fd := range s.stop {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if s.ring != nil {
		unix.Munmap(s.ring)
	}
	if s.fd < 0 {
		return nil
	}
	return unix.Close(s.fd)
}
