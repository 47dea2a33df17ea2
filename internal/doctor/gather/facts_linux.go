package gather

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"weft/internal/doctor"
	"weft/internal/hostsetup"
	"weft/internal/kernel"
	"weft/internal/overview"
	"weft/internal/service"
	"weft/internal/switchd"
)

// looker collects the facts of one machine.
type looker struct {
	Options
	f       *doctor.Facts
	ports   []string // devices to look at
	user    service.Account
	cancels []func()
}

// Facts looks at the machine, in the calling thread's network namespace. The caller locks the
// goroutine to its thread if that is not the process's own.
func Facts(ctx context.Context, o Options) (*doctor.Facts, error) {
	l := &looker{Options: o, f: &doctor.Facts{Settings: make(map[string]string), Unknown: make(map[string]string), Offline: o.Offline}}
	if err := l.ask(ctx); err != nil {
		return nil, err
	}
	l.system()
	if l.f.Role == doctor.RoleHost {
		l.host(ctx)
	} else {
		l.switches()
	}
	l.network()
	if l.f.Host != nil {
		l.pingBouncing(ctx)
		l.findTwin()
	}
	l.again(ctx)
	return l.f, nil
}

// ask finds out which daemon is here, and asks for its status.
func (l *looker) ask(ctx context.Context) error {
	f := l.f
	haveHost, haveSwitch := exists(l.HostConfig), exists(l.SwitchConfig)
	switch {
	case l.Offline:
		f.Role = doctor.RoleHost
		if !haveHost && haveSwitch {
			f.Role = doctor.RoleSwitch
		}
		return nil
	case l.Socket != "":
		text, err := l.answer(ctx, l.Socket)
		if err != nil {
			return err
		}
		return l.take(text)
	}
	host, err := hostSocket()
	if err != nil {
		return err
	}
	text, err := l.answer(ctx, host)
	if err == nil {
		return l.take(text)
	}
	f.Daemon.Error = err.Error()
	agent, err := switchd.StatusSocket()
	if err == nil {
		if text, err := l.answer(ctx, agent); err == nil {
			return l.take(text)
		} else if exists(agent) {
			f.Daemon.Error = err.Error()
		}
	}
	left := exists(host)
	dir, err := hostsetup.Dir()
	if err == nil {
		l.process(dir)
	}
	switch {
	case l.Lab != nil:
		f.Role = doctor.RoleSwitch
		if l.Lab.Host {
			f.Role = doctor.RoleHost
		}
	case left || f.Daemon.Process != 0 || f.Daemon.Leftover || haveHost:
		f.Role, f.Expected = doctor.RoleHost, true
	case haveSwitch || exists(agent):
		f.Role, f.Expected = doctor.RoleSwitch, true
	default:
		return ErrNothing
	}
	return nil
}

func hostSocket() (string, error) {
	dir, err := hostsetup.Dir()
	return dir + "/" + hostsetup.StatusSocket, err
}

func (l *looker) answer(ctx context.Context, socket string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return service.AskStatus(ctx, socket, "weft host or weft switch")
}

// take reads a daemon's status, the first or a later one.
func (l *looker) take(text []byte) error {
	var is struct {
		Switch  string `json:"switch"`
		Process int    `json:"process"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return err
	}
	f := l.f
	f.Expected, f.Daemon = true, doctor.Daemon{Answers: true, Process: is.Process}
	if is.Switch != "" {
		s, err := overview.ParseSwitch(text)
		f.Role, f.SwitchBefore, f.Switch = doctor.RoleSwitch, f.Switch, &s
		return err
	}
	h, err := overview.ParseHost(text)
	f.Role, f.HostBefore, f.Host = doctor.RoleHost, f.Host, &h
	return err
}

// again asks for a second status, to compare it with the first.
func (l *looker) again(ctx context.Context) {
	f := l.f
	if !f.Daemon.Answers || l.Between == 0 {
		return
	}
	asked := time.Now()
	if !sleep(ctx, l.Between) {
		return
	}
	socket := l.Socket
	if socket == "" {
		var err error
		if socket, err = hostSocket(); f.Role == doctor.RoleSwitch {
			socket, err = switchd.StatusSocket()
		}
		if err != nil {
			return
		}
	}
	if text, err := l.answer(ctx, socket); err == nil && l.take(text) == nil {
		f.Elapsed = time.Since(asked)
	}
}

func exists(file string) bool {
	if file == "" {
		return false
	}
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// setting reads sysctls.
func (l *looker) setting(keys ...string) {
	for _, key := range keys {
		if v, err := kernel.ReadSysctl(key); err == nil {
			l.f.Settings[key] = v
		}
	}
}
