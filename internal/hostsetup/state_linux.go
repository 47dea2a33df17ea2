package hostsetup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// hostState says what a host's set-up has changed. It is written before the
// change, so that a process that starts after a crash knows what was there
// before. Rules, routes and programs are not in it: they are found by their
// numbers and names.
type hostState struct {
	Boot    string       `json:"boot"`    // the kernel's boot ID,
	Netns   uint64       `json:"netns"`   // and the cookie of the network namespace: inodes are used again
	Process int          `json:"process"` // the latest
	Sysctls []savedValue `json:"sysctls"` // in the order of their change

	LinkLocal *addedAddress `json:"link_local,omitempty"` // which was not there before

	// Unknown are settings in the file that this version does not make, or not with such values: a
	// later version that has crashed has. They are left as they are, and stay in the file for it.
	Unknown []savedValue `json:"-"`
}

// maxUnknown bounds the settings of later versions.
const maxUnknown = 64

// savedValue is a setting that was changed. It is put back only if nobody has
// changed it since.
type savedValue struct {
	Key    string `json:"key"`
	Former string `json:"former"`
	Set    string `json:"set"`
}

// StatusSocket is the name, in the directory of Dir, of a daemon's status socket.
const StatusSocket = "status.sock"

// ClockFile is the name in Dir of the file in which a daemon keeps the time. It
// stays when the daemon ends, and so does the directory.
const ClockFile = "clock"

// dirKind is the kind of the directory that the host's set-up has (Dir).
const dirKind = "host"

// Dir returns the directory of the calling thread's network namespace. It holds
// the state of the host's set-up, its lock, and other files of which a namespace
// has one. It may not exist.
func Dir() (string, error) { return kernel.NamespaceDir(dirKind) }

// MakeDir makes the directory of Dir and gives it, with the files of earlier runs, to a
// user. uid -1 leaves the owner as it is, for processes that already run as that user.
func MakeDir(uid, gid int) (string, error) {
	return kernel.MakeNamespaceDir(dirKind, uid, gid, lockFile, stateName, ClockFile)
}

// stateFile is the path of the file with a host's state.
type stateFile string

// stateName is the state's name in the directory of Dir.
const stateName = "state.json"

// read returns the state that a crash left, or an empty one.
func (f stateFile) read() (hostState, error) {
	now, err := thisNetns()
	if err != nil {
		return now, err
	}
	file, err := os.OpenFile(string(f), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return now, fmt.Errorf("state of the host's set-up: %w", err)
	}
	defer file.Close()
	var s hostState
	if json.NewDecoder(file).Decode(&s) != nil || s.Boot != now.Boot || s.Netns != now.Netns {
		return now, nil // cut short before anything was changed, or of another time
	}
	all := s.Sysctls
	s.Sysctls = nil
	for _, v := range all {
		if v.check() == nil {
			s.Sysctls = append(s.Sysctls, v)
		} else if s.Unknown = append(s.Unknown, v); len(s.Unknown) > maxUnknown {
			return now, fmt.Errorf("%s has more than %d settings that this version of weft does not make; remove the file", f, maxUnknown)
		}
	}
	if a := s.LinkLocal; a != nil {
		if err := a.check(); err != nil {
			return now, fmt.Errorf("%s: %w; remove the file", f, err)
		}
	}
	s.Process = now.Process
	return s, nil
}

// savedKey matches the settings that a set-up changes. The file belongs to the
// daemon's user, and root must not write other settings that this user has put
// there.
var savedKey = regexp.MustCompile(`^net\.(ipv4\.conf\.[^. ]{0,14}[^./ ]\.(rp_filter|accept_local|forwarding|ignore_routes_with_linkdown)|ipv6\.conf\.(all\.forwarding|[^. ]{0,14}[^./ ]\.(accept_ra|ignore_routes_with_linkdown)))$`)

// tcpSettings are other settings that a set-up changes, with the kernel's bounds.
var tcpSettings = map[string]int{minRTTWindow: 86400, tsoRTT: 255}

func (v savedValue) check() error {
	most, tcp := tcpSettings[v.Key]
	switch {
	case tcp:
	case savedKey.MatchString(v.Key):
		most = 2
	default:
		most = -1
	}
	if n, err := strconv.Atoi(v.Former); err != nil || n < 0 || n > most {
		return fmt.Errorf("%s=%q is not a setting that weft makes", v.Key, v.Former)
	}
	return nil
}

// unknownKeys names the settings that are left to a later version, as text for a terminal.
func (s *hostState) unknownKeys() (keys []string) {
	for _, v := range s.Unknown {
		keys = append(keys, fmt.Sprintf("%.80q", v.Key))
	}
	return keys
}

func (f stateFile) write(s hostState) error {
	s.Sysctls = slices.Concat(s.Sysctls, s.Unknown)
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	tmp := string(f) + ".new"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = file.Write(b)
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		err = os.Rename(tmp, string(f))
	}
	if err != nil {
		return kernel.Explain(fmt.Errorf("state of the host's set-up: %w", err))
	}
	return nil
}

func (f stateFile) remove() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state of the host's set-up: %w", err)
	}
	return nil
}

// thisNetns returns a state that says of which network namespace it is.
func thisNetns() (hostState, error) {
	s := hostState{Process: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return s, err
	}
	s.Boot = strings.TrimSpace(string(boot))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	defer unix.Close(fd)
	// Linux 5.14; before, the inode must do.
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		s.Netns = cookie
	}
	return s, nil
}
