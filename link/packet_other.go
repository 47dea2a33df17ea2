//go:build !linux

package link

import "errors"

// Packet is a packet socket; weft has one on Linux only.
type Packet struct{ none }

// OpenPacket returns an error: packet sockets are supported on Linux only.
func OpenPacket(c PacketConfig) (*Packet, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return nil, errors.New("packet: weft opens packet sockets on Linux only; use an in-memory device")
}
