package kerneltest

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Wire is a packet socket on a device. It takes all protocols: a socket for IP alone
// would see packets only after tc ingress, decapsulated.
type Wire struct {
	FD       int
	Own, Far net.HardwareAddr
}

// Htons is a number in network byte order.
func Htons(v uint16) uint16 { return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)) }

// Send sends an IPv4 packet to the other end.
func (w *Wire) Send(t *testing.T, packet []byte) {
	t.Helper()
	frame := append(append(append([]byte{}, w.Far...), w.Own...), 0x08, 0x00)
	if _, err := unix.Write(w.FD, append(frame, packet...)); err != nil {
		t.Fatal(err)
	}
}

// Receive returns the next IPv4 packet that came in.
func (w *Wire) Receive(t *testing.T) []byte {
	t.Helper()
	return w.receive(t, unix.ETH_P_IP)
}

// Receive6 returns the next IPv6 packet that came in.
func (w *Wire) Receive6(t *testing.T) []byte {
	t.Helper()
	return w.receive(t, unix.ETH_P_IPV6)
}

func (w *Wire) receive(t *testing.T, protocol uint16) []byte {
	t.Helper()
	b := make([]byte, 70000)
	for {
		n, from, err := unix.Recvfrom(w.FD, b, 0)
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING && binary.BigEndian.Uint16(b[12:]) == protocol {
			return b[kernel.EthernetHeader:n]
		}
	}
}

// SendFrame sends a packet of any protocol.
func (w *Wire) SendFrame(t *testing.T, protocol uint16, packet []byte) {
	t.Helper()
	frame := binary.BigEndian.AppendUint16(slices.Concat(w.Far, w.Own), protocol)
	if _, err := unix.Write(w.FD, append(frame, packet...)); err != nil {
		t.Fatal(err)
	}
}

// SendLabelled sends an IPv6 packet.
func (w *Wire) SendLabelled(t *testing.T, packet []byte) {
	t.Helper()
	w.SendFrame(t, unix.ETH_P_IPV6, packet)
}

// PacketSocket opens one on a device; nothing gets past its filter, from the
// start.
func PacketSocket(t testing.TB, index int, filter []bpf.RawInstruction) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	t.Cleanup(func() { unix.Close(fd) })
	if len(filter) > 0 {
		if err := kernel.AttachSocketFilter(fd, filter); err != nil {
			return 0, err
		}
	}
	tv := unix.NsecToTimeval(int64(Patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: Htons(unix.ETH_P_ALL), Ifindex: index})
}

// OpenWire opens one on a device. far is the device at the other end of the cable, in
// its namespace.
func OpenWire(t testing.TB, ns, device, farNS, far string) *Wire {
	t.Helper()
	w := &Wire{}
	err := kernel.InNamespace(farNS, func() error {
		dev, err := net.InterfaceByName(far)
		if err == nil {
			w.Far = dev.HardwareAddr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = kernel.InNamespace(ns, func() error {
		dev, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		w.Own = dev.HardwareAddr
		w.FD, err = PacketSocket(t, dev.Index, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
