package disturb

import (
	"errors"
	"net"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Detach takes the TCX programs whose names have a prefix from a device of the calling
// thread's namespace, as somebody might who does not know whose they are. It returns how many
// these were.
func Detach(device, prefix string) (n int, err error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return 0, err
	}
	for _, at := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
		q, err := link.QueryPrograms(link.QueryOptions{Target: dev.Index, Attach: at})
		if err != nil {
			return n, err
		}
		for _, p := range q.Programs {
			prog, err := ebpf.NewProgramFromID(p.ID)
			if err != nil {
				continue // it is gone already
			}
			info, err := prog.Info()
			if err == nil && strings.HasPrefix(info.Name, prefix) {
				n++
				err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: dev.Index, Program: prog, Attach: at})
			}
			if err := errors.Join(err, prog.Close()); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
