package faults

import (
	"os"
	"syscall"

	"weft/internal/daemon"
)

var ofDaemons = []Fault{
	{Name: "daemon-killed", What: "the host's daemon is killed", Inject: signalling(Observer, syscall.SIGKILL, 0),
		Cause: Cause{{"weft host", "running"}, {"weft host", "not run"}, {"weft host", "ended"}}},
	{Name: "daemon-stopped", What: "the host's daemon is stopped (SIGSTOP)", Inject: signalling(Observer, syscall.SIGSTOP, syscall.SIGCONT),
		Cause: Cause{{"stopped"}, {"hangs"}}},
	{Name: "peer-killed", What: "the daemon of another host is killed", Inject: signalling("h3.1.3", syscall.SIGKILL, 0),
		Cause: Cause{{"answers no"}, {"no request"}}, At: []string{"h3.1.3"}},
	{Name: "wrong-uplink", What: "the configuration names an uplink that does not exist", Start: true, Config: "uplink: eth7\n",
		Cause: Cause{{"uplink", "eth7"}}},
	{Name: "wrong-user", What: "the configuration names a user that does not exist", Start: true, Config: "user: nosuchuser\n",
		Cause: Cause{{"user", "nosuchuser"}}},
	{Name: "wrong-address", What: "the configuration has another rack's address", Start: true, Config: "address: 10.1.0.2\n",
		Cause: Cause{{"address", "10.1.0.2"}}},
	{Name: "wrong-congestion", What: "the configuration names a congestion control that the kernel does not have", Start: true, Config: "congestion_control: vegas\n",
		Cause: Cause{{"congestion_control", "vegas"}}},
	{Name: "socket-gone", What: "somebody removes the status socket", Inject: socketGone,
		Cause: Cause{{"socket"}}},
}

// socketGone removes the daemon's socket, as a cleaner of /run might.
func socketGone(b *Bed) (func() error, error) {
	return nil, b.do(Observer, func() error {
		path, err := daemon.StatusSocket()
		if err != nil {
			return err
		}
		return os.Remove(path)
	})
}
