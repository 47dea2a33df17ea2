package apps

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"weft/bench/apps/output"
	"weft/topology"
)

// nginx gets a page, by wrk, which keeps its connections. wrk ends by time alone. So its script
// says when enough pages have come.
type nginx struct{ common }

const (
	nginxPage    = 8 << 10
	nginxClients = 4
	wrkSays      = "counted"
	wrkTimeout   = "60s" // of a page; wrk reserves 8 MB for each second of it
	wrkScript    = `local pages = 0
function response(status, headers, body)
  pages = pages + 1
  if pages == %d then io.write("` + wrkSays + `\n") io.flush() end
end
`
	nginxConfig = `daemon off; master_process off; pid nginx.pid; error_log stderr;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  server { listen %v:8080; root www; }
}
`
)

func (nginx) pages(s *site) int { return max(s.bytes/nginxPage, nginxClients) }

func (n nginx) prepare(_ context.Context, s *site, hosts []topology.Node) error {
	page := make([]byte, nginxPage)
	for _, h := range hosts {
		dir := s.at(h, "nginx")
		err := errors.Join(os.MkdirAll(filepath.Join(dir, "www"), 0o755),
			os.WriteFile(filepath.Join(dir, "www", "page"), page, 0o644),
			os.WriteFile(filepath.Join(dir, "nginx.conf"), fmt.Appendf(nil, nginxConfig, h.Addr), 0o600),
			os.WriteFile(filepath.Join(s.at(h, "wrk"), "count.lua"), fmt.Appendf(nil, wrkScript, n.pages(s)), 0o600))
		if err != nil {
			return err
		}
	}
	return nil
}

func (nginx) port() uint16 { return 8080 }

func (nginx) server(s *site, h topology.Node) *exec.Cmd {
	dir := s.at(h, "nginx")
	return command(dir, nil, where("nginx"), "-e", "stderr", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
}

func (nginx) client(s *site, h topology.Node, server netip.Addr) (*exec.Cmd, string, error) {
	return command(s.at(h, "wrk"), nil, where("wrk"), "-t", "1", "-c", strconv.Itoa(nginxClients), "-d", "1h", "--timeout", wrkTimeout,
		"--latency", "-s", "count.lua", fmt.Sprintf("http://%v:8080/page", server)), wrkSays, nil
}

func (n nginx) read(s *site, _ topology.Node, text string) (float64, error) {
	p99, err := output.Wrk(text, n.pages(s))
	return p99Of(p99, n.pages(s)), err
}
