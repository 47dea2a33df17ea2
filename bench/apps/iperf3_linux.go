package apps

import (
	"net/netip"
	"os/exec"
	"strconv"

	"weft/bench/apps/output"
	"weft/topology"
)

// iperf3 gets one stream from its server (-R). A client that sends is done when its kernel has
// the last bytes, much before they arrive.
type iperf3 struct{ common }

func (iperf3) port() uint16 { return 5201 }

func (iperf3) server(s *site, h topology.Node) *exec.Cmd {
	return command(s.at(h, "iperf3-server"), nil, where("iperf3"), "-s", "-B", h.Addr.String(), "-p", "5201")
}

func (iperf3) client(s *site, h topology.Node, server netip.Addr) (*exec.Cmd, string, error) {
	return command(s.at(h, "iperf3"), nil, where("iperf3"), "-c", server.String(), "-p", "5201", "-R", "-n", strconv.Itoa(s.bytes), "-J"), "", nil
}

func (iperf3) read(s *site, _ topology.Node, text string) (float64, error) {
	return 0, output.IPerf3(text, int64(s.bytes))
}
