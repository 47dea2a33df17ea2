package gather

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"weft/internal/config"
	"weft/internal/daemon"
	"weft/internal/doctor"
)

// host looks at a host's configuration, and finds its uplinks.
func (l *looker) host(ctx context.Context) {
	f := l.f
	file := l.HostConfig
	if p := f.Daemon.Process; p != 0 {
		if known := configOf(p); known != "" {
			file = known
		}
	}
	if exists(file) && (l.Lab == nil || f.Daemon.Process != 0) {
		l.hostConfig(ctx, file)
	}
	l.hostUplinks()
	if l.Lab != nil && len(l.ports) == 0 {
		for _, p := range l.Lab.Ports {
			l.ports = append(l.ports, p.Name)
		}
	}
	l.setting("net.ipv4.tcp_sack", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_recovery", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
		"net.ipv4.tcp_available_congestion_control")
}

func (l *looker) hostConfig(ctx context.Context, file string) {
	f := l.f
	s := &doctor.Config{File: file}
	f.Config = s
	c, err := daemon.Load(file)
	if err != nil {
		s.Error = err.Error()
		return
	}
	fit := c.Fit(ctx)
	if fit.NoUser != nil {
		s.User = fit.NoUser.Error()
	}
	l.user = fit.User
	for _, m := range fit.Misfits {
		s.Misfits = append(s.Misfits, doctor.Misfit{Key: m.Key, Text: m.Err.Error(), Auto: m.Auto})
	}
	for _, k := range fit.Secrets {
		s.Keys = append(s.Keys, l.keyFile(k.File, k.From))
	}
	s.Topology, s.Sprays, s.RateMbit = c.Topology, fit.Sprays, fit.RateMbit
	s.Signed, s.Congestion, s.QCN = len(c.Failures.Keys) > 0, c.CongestionControl, c.QCN.Enabled
	s.TUN, s.Becomes = c.TUN.Name, fit.User.UID != 0
	s.Gateway = c.Mode == daemon.ModeGateway || c.Resequence == config.Yes
	if s.Carrier = c.Encapsulation[0]; s.Carrier == daemon.EncapUDP {
		s.UDPPort = int(c.UDP.Listen.Port())
	}
	if f.Host != nil {
		s.Gateway = f.Host.Dataplane != nil
		s.Carrier = f.Host.Encapsulation
	}
	for _, u := range fit.Uplinks {
		l.ports = append(l.ports, u.Name)
		if u.Gateway.IsValid() {
			f.Gateways = append(f.Gateways, doctor.Gateway{Device: u.Name, Addr: u.Gateway})
		}
		if u.Switch != "" {
			f.Cables = append(f.Cables, doctor.Cable{Device: u.Name, Expected: u.Switch})
		}
	}
	for _, name := range c.Uplink {
		if !slices.Contains(l.ports, name) {
			l.ports = append(l.ports, name)
		}
	}
}

// hostUplinks adds the uplinks that the daemon has.
func (l *looker) hostUplinks() {
	h := l.f.Host
	if h == nil {
		return
	}
	names := []string{h.Uplink}
	for _, u := range h.Uplinks {
		names = append(names, u.Device)
		if u.Switch != "" && !slices.ContainsFunc(l.f.Cables, func(c doctor.Cable) bool { return c.Device == u.Device }) {
			l.f.Cables = append(l.f.Cables, doctor.Cable{Device: u.Device, Expected: u.Switch})
		}
	}
	for _, name := range names {
		if name != "" && !slices.Contains(l.ports, name) {
			l.ports = append(l.ports, name)
		}
	}
}

// keyFile looks at a file with a secret.
func (l *looker) keyFile(file string, from time.Duration) doctor.KeyFile {
	k := doctor.KeyFile{Path: file, From: from, User: l.user.Name, Readable: true}
	if file == "" {
		return k
	}
	st, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.Error = "there is no such file"
		return k
	case err != nil:
		k.Error = err.Error()
		return k
	}
	mode := st.Mode().Perm()
	k.Others = mode&0o004 != 0
	if raw, ok := st.Sys().(*syscall.Stat_t); ok && l.user.UID != 0 {
		switch {
		case int(raw.Uid) == l.user.UID:
			k.Readable = mode&0o400 != 0
		case int(raw.Gid) == l.user.GID:
			k.Readable = mode&0o040 != 0
		default:
			k.Readable = k.Others
		}
	}
	return k
}
