package apps

import (
	"net/netip"
	"os/exec"
	"strconv"

	"weft/bench/apps/output"
	"weft/topology"
)

// redis sets and gets values over connections that wait for each answer.
type redis struct{ common }

const (
	redisValue   = 4 << 10
	redisClients = 4
)

func (redis) port() uint16 { return 6379 }

func (redis) server(s *site, h topology.Node) *exec.Cmd {
	return command(s.at(h, "redis-server"), nil, where("redis-server"), "--bind", h.Addr.String(), "--port", "6379",
		"--dir", s.at(h, "redis-server"), "--save", "", "--appendonly", "no", "--daemonize", "no", "--protected-mode", "no")
}

// requests are those of SET, and of GET.
func (redis) requests(s *site) int { return max(s.bytes/2/redisValue, redisClients) }

func (r redis) client(s *site, h topology.Node, server netip.Addr) (*exec.Cmd, string, error) {
	return command(s.at(h, "redis-benchmark"), nil, where("redis-benchmark"), "-h", server.String(), "-p", "6379",
		"-n", strconv.Itoa(r.requests(s)), "-c", strconv.Itoa(redisClients), "-d", strconv.Itoa(redisValue), "-t", "set,get", "--csv"), "", nil
}

func (r redis) read(s *site, _ topology.Node, text string) (float64, error) {
	p99, err := output.Redis(text, "SET", "GET")
	return p99Of(p99, r.requests(s)), err
}
