package apps

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"weft/bench/apps/output"
	"weft/topology"
)

// rsync gets a folder from a daemon.
type rsync struct{ common }

const (
	rsyncSmall = 16 // files, and one large one
	// The daemon would ask for the names of its clients, which labs do not have.
	rsyncConfig = `use chroot = no
uid = 0
gid = 0
log file = rsync.log
reverse lookup = no
forward lookup = no
[files]
path = %s
read only = yes
`
)

// sizes are those of the large file and of each small one.
func (rsync) sizes(s *site) (large, small int) { return s.bytes / 2, s.bytes / 2 / rsyncSmall }

func (r rsync) prepare(_ context.Context, s *site, hosts []topology.Node) error {
	large, small := r.sizes(s)
	content := make([]byte, large)
	rand.Read(content)
	for _, h := range hosts {
		dir := s.at(h, "rsync-daemon")
		files := filepath.Join(dir, "files")
		errs := []error{os.MkdirAll(files, 0o755), os.WriteFile(filepath.Join(files, "large"), content, 0o644),
			os.WriteFile(filepath.Join(dir, "rsyncd.conf"), fmt.Appendf(nil, rsyncConfig, files), 0o600)}
		for i := range rsyncSmall {
			errs = append(errs, os.WriteFile(filepath.Join(files, fmt.Sprint("small", i)), content[:small], 0o644))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

func (rsync) port() uint16 { return 873 }

func (rsync) server(s *site, h topology.Node) *exec.Cmd {
	dir := s.at(h, "rsync-daemon")
	return command(dir, nil, where("rsync"), "--daemon", "--no-detach", "--config="+filepath.Join(dir, "rsyncd.conf"), "--port=873", "--address="+h.Addr.String())
}

func (rsync) client(s *site, h topology.Node, server netip.Addr) (*exec.Cmd, string, error) {
	copied := filepath.Join(s.at(h, "rsync"), "copy") // of the round before
	if err := os.RemoveAll(copied); err != nil {
		return nil, "", err
	}
	return command(s.at(h, "rsync"), nil, where("rsync"), "-a", "--stats", fmt.Sprintf("rsync://%v:873/files/", server), copied+"/"), "", nil
}

func (r rsync) read(s *site, _ topology.Node, text string) (float64, error) {
	large, small := r.sizes(s)
	return 0, output.Rsync(text, 1+rsyncSmall, int64(large+rsyncSmall*small))
}
