package fabric

import (
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Watch tells when the kernel may have changed something.
type Watch = kernel.Watch

// WatchSwitch tells when the kernel may have changed a part of a switch's set-up, or a
// planned route, in the network namespace of the calling thread. It does not tell when a
// route of another protocol takes a planned one's place: look for that from time to time.
func WatchSwitch() (*Watch, error) { return kernel.NewWatch(concernsSwitch) }

// concernsSwitch leaves out routes that are nobody's plan.
func concernsSwitch(kind uint16, data []byte) bool {
	if kind != unix.RTM_NEWROUTE && kind != unix.RTM_DELROUTE {
		return true
	}
	return len(data) >= unix.SizeofRtMsg && data[5] == kernel.RouteProtocol
}
