package gather

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// twinTime is how long an answer is waited for.
const twinTime = 300 * time.Millisecond

// findTwin asks at the uplink who has this host's address, as a host does before it takes one
// (RFC 5227 §2.1.1). Nobody is to answer.
func (l *looker) findTwin() {
	own, err := netip.ParseAddr(l.f.Host.Address)
	switch {
	case err != nil || !own.Is4() || l.f.Host.Uplink == "":
		l.f.Unknown["duplicate"] = "the daemon names no IPv4 address and uplink"
		return
	case !l.f.System.Root:
		l.f.Unknown["duplicate"] = "it takes root"
		return
	}
	twin, err := probeARP(l.f.Host.Uplink, own)
	if err != nil {
		l.f.Unknown["duplicate"] = err.Error()
		return
	}
	l.f.Twin = twin
}

// ownAddresses are the hardware addresses of all devices of this network namespace: any of them
// answers for an address of this host (arp_ignore).
func ownAddresses() (map[[6]byte]bool, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	own := make(map[[6]byte]bool)
	for _, d := range devices {
		if len(d.HardwareAddr) == 6 {
			own[[6]byte(d.HardwareAddr)] = true
		}
	}
	return own, nil
}

// probeARP returns the hardware address of who answers for an address; "" if nobody does.
func probeARP(device string, address netip.Addr) (string, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return "", err
	}
	if len(dev.HardwareAddr) != 6 {
		return "", fmt.Errorf("%s has no hardware address of 6 bytes", device)
	}
	own, err := ownAddresses()
	if err != nil {
		return "", err
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	at := &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: dev.Index, Halen: 6, Addr: [8]byte{255, 255, 255, 255, 255, 255}}
	if err := unix.Bind(fd, at); err != nil {
		return "", err
	}
	ip := address.As4()
	request := make([]byte, 28) // RFC 826; the sender's address is 0
	copy(request, []byte{0, 1, 8, 0, 6, 4, 0, 1})
	copy(request[8:], dev.HardwareAddr)
	copy(request[24:], ip[:])
	if err := unix.Sendto(fd, request, 0, at); err != nil {
		return "", err
	}
	buf := make([]byte, 64)
	for end := time.Now().Add(twinTime); ; {
		left := time.Until(end)
		if left <= 0 {
			return "", nil
		}
		timeout := unix.NsecToTimeval(int64(max(left, time.Millisecond)))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
			return "", err
		}
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			continue // nothing has come, or a signal
		}
		const reply = 2
		if n >= 28 && binary.BigEndian.Uint16(buf[6:]) == reply && [4]byte(buf[14:18]) == ip && !own[[6]byte(buf[8:14])] {
			return net.HardwareAddr(buf[8:14]).String(), nil
		}
	}
}
