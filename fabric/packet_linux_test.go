package fabric

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"weft/topology"
)

// wire is a packet socket on a port of a lab's node. It takes all protocols: a
// socket for IP alone would see packets only after tc ingress, decapsulated.
type wire struct {
	fd       int
	own, far net.HardwareAddr
}

func openWire(t *testing.T, l *Lab, id topology.NodeID, port int) *wire {
	t.Helper()
	p := l.Config.Topology.Ports(id)[port]
	w := &wire{own: portMAC(id, port), far: portMAC(p.Peer, p.PeerPort)}
	err := l.Do(id, func() error {
		dev, err := net.InterfaceByName(fmt.Sprintf(DefaultPortFormat, port))
		if err != nil {
			return err
		}
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL))); err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(w.fd) })
		tv := unix.NsecToTimeval(int64(patience))
		if err := unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return err
		}
		return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: dev.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func htons(v uint16) uint16 { return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)) }

func (w *wire) send(t *testing.T, packet []byte) {
	t.Helper()
	frame := append(append(append([]byte{}, w.far...), w.own...), 0x08, 0x00)
	if _, err := unix.Write(w.fd, append(frame, packet...)); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next IP packet that came in.
func (w *wire) receive(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, 70000)
	for {
		n, from, err := unix.Recvfrom(w.fd, b, 0)
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING && b[12] == 0x08 && b[13] == 0x00 {
			return b[ethernetHeader:n]
		}
	}
}
