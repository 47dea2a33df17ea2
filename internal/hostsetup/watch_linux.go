package hostsetup

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// NewWatch returns a watch that tells when the kernel may have changed a part of a host's
// set-up, in the network namespace of the calling thread.
func NewWatch() (*kernel.Watch, error) { return kernel.NewWatch(concernsHost) }

// concernsHost leaves out other routes than weft's own and default ones, of which
// a host that speaks BGP gets many.
func concernsHost(kind uint16, data []byte) bool {
	if kind != unix.RTM_NEWROUTE && kind != unix.RTM_DELROUTE {
		return true
	}
	if len(data) < unix.SizeofRtMsg {
		return false
	}
	bits, table := data[1], uint32(data[4])
	for b := data[unix.SizeofRtMsg:]; len(b) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.RTA_TABLE && n >= unix.SizeofRtAttr+4 {
			table = binary.NativeEndian.Uint32(b[unix.SizeofRtAttr:])
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return bits == 0 || table == TableIn || table == TableOut
}
