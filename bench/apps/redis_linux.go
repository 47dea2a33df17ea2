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
	redisValue   = 8 << 10
	redisClients = 4
)

func (redis) port() uint16 { return 6379 }

func (redis) server(s *site, h topology.Node) *exec.Cmd {
	return command(s.at(h, "redis-server"), nil, where("redis-server"), "--bind", h.Addr.String(), "--port", "6379",
		"--dir", s.at(h, "redis-server"), "--save", "", "--appendonly", "no", "--daemonize", "no", "--protected-mode", "no")
}

func (redis) client(s *site, h topology.Node, server netip.Addr) (*exec.Cmd, string, error) {
	requests := max(s.bytes/2/redisValue, redisClients) // of SET, and of GET
	return command(s.at(h, "redis-benchmark"), nil, where("redis-benchmark"), "-h", server.String(), "-p", "6379",
		"-n", strconv.Itoa(requests), "-c", strconv.Itoa(redisClients), "-d", strconv.Itoa(redisValue), "-t", "set,get", "--csv"), "", nil
}

func (redis) read(_ *site, _ topology.Node, text string) (float64, error) {
	return output.Redis(text, "SET", "GET")
}
