package gather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weft/internal/config"
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
	f        *doctor.Facts
	ports    []string // devices to look at
	toHosts  []string // a switch's ports with hosts behind
	user     service.Account
	answered string // the socket at which the daemon has
	cancels  []func()
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
	dir, err := hostsetup.Dir()
	if err != nil {
		return err
	}
	l.process(dir)
	host, hostErr := l.askHost(ctx, dir)
	if hostErr == nil {
		return l.takeFirst(host)
	}
	hostSilent := errors.As(hostErr, new(service.SilentError))
	f.Daemon.Error = hostErr.Error()
	agent, there, err := l.askSwitch(ctx)
	if err == nil {
		return l.takeFirst(agent)
	}
	_, noLock := f.Unknown["daemon"]
	here := hostSilent || noLock || f.Daemon.Process != 0 || f.Daemon.Leftover || exists(filepath.Join(dir, hostsetup.StatusSocket))
	silent := service.SilentError{}
	switch {
	case l.Lab != nil:
		f.Role = doctor.RoleSwitch
		if l.Lab.Host {
			f.Role = doctor.RoleHost
		}
	case here, haveHost && !errors.As(err, &silent):
		f.Role, f.Expected = doctor.RoleHost, true
	case haveSwitch || there:
		f.Role, f.Expected = doctor.RoleSwitch, true
	default:
		return ErrNothing
	}
	if f.Role == doctor.RoleSwitch {
		l.silentSwitch(err, there)
	} else if f.Daemon.Hidden = statusOf(l.fileOf(l.HostConfig)) == service.NoStatus; !f.Daemon.Hidden && f.Daemon.Process == 0 && hostSilent {
		l.held(hostErr)
	}
	return nil
}

// askHost asks weft host, at the socket that its configuration names or the standard one.
func (l *looker) askHost(ctx context.Context, dir string) ([]byte, error) {
	return l.askAt(ctx, statusOf(l.fileOf(l.HostConfig)), filepath.Join(dir, hostsetup.StatusSocket))
}

// askSwitch asks weft switch likewise, and reports whether there is a socket.
func (l *looker) askSwitch(ctx context.Context) (text []byte, there bool, err error) {
	standard, err := switchd.StatusSocket()
	if err != nil {
		return nil, false, err
	}
	named := ""
	if l.Lab == nil {
		named = statusOf(l.SwitchConfig)
	}
	text, err = l.askAt(ctx, named, standard)
	return text, exists(standard) || named != service.NoStatus && exists(named), err
}

// askAt asks a daemon at the socket that its configuration names, and then, as that may have
// changed, at the standard one.
func (l *looker) askAt(ctx context.Context, named, standard string) ([]byte, error) {
	var first error
	for _, socket := range []string{named, standard} {
		if socket == "" || socket == service.NoStatus {
			continue
		}
		text, err := l.answer(ctx, socket)
		if err == nil {
			l.answered = socket
			return text, nil
		}
		if first == nil || !errors.As(first, new(service.SilentError)) && errors.As(err, new(service.SilentError)) {
			first = err
		}
	}
	return nil, first
}

// silentSwitch says what is known of an agent that does not answer. It has no lock.
func (l *looker) silentSwitch(err error, there bool) {
	l.f.Daemon = doctor.Daemon{}
	delete(l.f.Unknown, "daemon") // of a host's lock
	if there {
		l.f.Daemon.Error = err.Error()
	}
	if l.Lab == nil && statusOf(l.SwitchConfig) == service.NoStatus {
		l.f.Daemon.Hidden = true
		l.f.Unknown["daemon"] = "the configuration says status: off"
	} else if errors.Is(err, fs.ErrPermission) {
		l.f.Unknown["daemon"] = err.Error()
	}
	l.held(err)
}

// held takes the process behind a socket from an error.
func (l *looker) held(err error) {
	if e := (service.SilentError{}); errors.As(err, &e) {
		delete(l.f.Unknown, "daemon")
		l.f.Daemon.Process, l.f.Daemon.Stopped, l.f.Daemon.Error = e.Process, e.Held, e.Error()
	}
}

// fileOf is the configuration that a running daemon was started with, or else a file. In a lab
// that is the machine's, and no node's.
func (l *looker) fileOf(file string) string {
	if p := l.f.Daemon.Process; p != 0 {
		if known := configOf(p); known != "" {
			return known
		}
	}
	if l.Lab != nil {
		return ""
	}
	return file
}

// statusOf is what a configuration says of the status socket, "" for the standard one. The rest of
// it, and files that it names, need not be right, nor readable.
func statusOf(file string) string {
	if file == "" {
		return ""
	}
	text, err := config.Read(file, "weft doctor")
	if err != nil {
		return ""
	}
	return config.Scalar(text, "status")
}

func (l *looker) answer(ctx context.Context, socket string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return service.AskStatus(ctx, socket, "weft host or weft switch")
}

// takeFirst reads the first status. What is not known of the process without it is known then.
func (l *looker) takeFirst(text []byte) error {
	delete(l.f.Unknown, "daemon")
	return l.take(text)
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
	socket := cmp.Or(l.Socket, l.answered)
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
