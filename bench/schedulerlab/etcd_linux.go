package schedulerlab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"weft/internal/kernel"
)

// The endpoints of etcd's only member, in the namespace of the control network.
const (
	etcdClients = "127.0.0.1:2379"
	etcdPeers   = "127.0.0.1:2380"
)

// etcd is the program's name, also among the processes.
const etcd = "etcd"

// Check says what is to be installed.
func Check() error {
	if _, err := exec.LookPath(etcd); err != nil {
		return errors.New("the program etcd, in which weft scheduler keeps placements, is missing: apt install etcd-server")
	}
	return nil
}

// startEtcd starts etcd and waits until it listens.
func (s *Scheduled) startEtcd(ctx context.Context) error {
	if err := Check(); err != nil {
		return err
	}
	c := exec.Command(etcd, "--name", "lab", "--data-dir", filepath.Join(s.dir.Path, etcd), "--logger", "zap", "--log-level", "warn",
		"--listen-client-urls", "http://"+etcdClients, "--advertise-client-urls", "http://"+etcdClients,
		"--listen-peer-urls", "http://"+etcdPeers, "--initial-advertise-peer-urls", "http://"+etcdPeers,
		"--initial-cluster", "lab=http://"+etcdPeers)
	for _, v := range os.Environ() { // it ends if a variable and a flag say the same
		if !strings.HasPrefix(v, "ETCD_") {
			c.Env = append(c.Env, v)
		}
	}
	if err := s.start(etcd, s.net, c); err != nil {
		return err
	}
	return s.await(ctx, etcd, processLimit, func() string {
		err := kernel.InNamespace(s.net, func() error {
			conn, err := net.DialTimeout("tcp", etcdClients, time.Second)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err != nil {
			return fmt.Sprint("it does not listen: ", err)
		}
		return ""
	})
}
