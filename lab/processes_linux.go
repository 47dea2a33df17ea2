package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// EndedProcess is a process that ran in a lab's namespace when the lab was taken down.
type EndedProcess struct {
	PID       int
	Name      string // of the program, as the kernel has it
	Namespace string
	Killed    bool // SIGTERM had not ended it within killAfter
}

// killAfter is how long processes may take to end by themselves.
const killAfter = 2 * time.Second

func (p EndedProcess) String() string {
	how := "ended"
	if p.Killed {
		how = "killed, which SIGTERM had not ended,"
	}
	return fmt.Sprintf("%s process %d (%s) in %s", how, p.PID, p.Name, p.Namespace)
}

// fileID identifies a file.
type fileID struct{ device, number uint64 }

func fileIDOf(path string) (fileID, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return fileID{st.Dev, st.Ino}, err
}

// endProcesses ends the processes whose network namespace is one of those named, and
// no others, nor this one. A process belongs to where its main thread is.
func endProcesses(names []string) (ended []EndedProcess, err error) {
	of := make(map[fileID]string, len(names))
	for _, name := range names {
		if i, err := fileIDOf(filepath.Join(kernel.NetnsDir, name)); err == nil {
			of[i] = name
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var open []int
	defer func() {
		for _, fd := range open {
			unix.Close(fd)
		}
	}()
	for _, e := range entries {
		pid, notOne := strconv.Atoi(e.Name())
		if notOne != nil || pid == os.Getpid() {
			continue
		}
		if _, ok := of[namespaceOf(pid)]; !ok {
			continue
		}
		fd, e := unix.PidfdOpen(pid, 0)
		if errors.Is(e, unix.ESRCH) {
			continue
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("process %d: %w", pid, e))
			continue
		}
		// The number may be another process's by now; the descriptor's will not.
		name, ok := of[namespaceOf(pid)]
		comm, e := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if !ok || e != nil {
			unix.Close(fd)
			continue
		}
		open = append(open, fd)
		ended = append(ended, EndedProcess{PID: pid, Name: strings.TrimSpace(string(comm)), Namespace: name})
	}
	for i := range ended {
		err = errors.Join(err, signalProcess(open[i], ended[i].PID, unix.SIGTERM))
	}
	deadline := time.Now().Add(killAfter)
	for i := range ended {
		if hasEnded(open[i], deadline) {
			continue
		}
		ended[i].Killed = true
		err = errors.Join(err, signalProcess(open[i], ended[i].PID, unix.SIGKILL))
	}
	for i := range ended {
		if ended[i].Killed && !hasEnded(open[i], time.Now().Add(killAfter)) {
			err = errors.Join(err, fmt.Errorf("process %d (%s) in %s does not end", ended[i].PID, ended[i].Name, ended[i].Namespace))
		}
	}
	return ended, err
}

// namespaceOf is the zero fileID where a process has none any more, or it may not be
// seen.
func namespaceOf(pid int) fileID {
	i, _ := fileIDOf(fmt.Sprintf("/proc/%d/ns/net", pid))
	return i
}

func signalProcess(fd, pid int, s unix.Signal) error {
	err := unix.PidfdSendSignal(fd, s, nil, 0)
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return kernel.Explain(fmt.Errorf("end process %d: %w", pid, err))
}

// hasEnded waits until a deadline for a process to end.
func hasEnded(fd int, deadline time.Time) bool {
	for {
		wait := max(0, time.Until(deadline))
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int((wait+time.Millisecond-1)/time.Millisecond))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
