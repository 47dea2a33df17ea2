package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// What a process leaves if it is killed: its programs die with it, and what those of a group have
// started; and its directory goes when the next
// one makes its own, which takes no other away.
func TestStart_endsWithTheProcess(t *testing.T) {
	const variable, prefix = "WEFT_TEST_CHILD", "weft-child-test-"
	if os.Getenv(variable) != "" { // the process that is killed
		d, err := TempDir(prefix)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sleep", "1000")
		c.Stdout = os.Stdout
		p, err := Start("", c)
		if err != nil {
			t.Fatal(err)
		}
		g := exec.Command("sh", "-c", "sleep 1000 & wait") // holds the output, too
		g.Stdout, g.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setpgid: true}
		if _, err := Start("", g); err != nil {
			t.Fatal(err)
		}
		fmt.Println("child", p.cmd.Process.Pid, d.Path)
		p.Wait()
		return
	}
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := TempDir(prefix)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(os.TempDir(), prefix+"other") // without a lock
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), variable+"=1")
	out, in, err := os.Pipe() // which Wait does not close
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout = in
	owner, err := Start("", c) // ends with the test, too
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 3 || words[0] != "child" {
		t.Fatalf("%q, %v", line, err)
	}
	pid, dir := words[1], words[2]
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, r); closed <- err }() // the program has the other end, too
	if err := owner.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(kerneltest.Patience):
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
		t.Fatal("a program lives on")
	}
	owner.Wait()
	next, err := TempDir(prefix)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dir: false, alive.Path: true, other: true, next.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v; is to be there: %t", path, err, want)
		}
	}
	for _, d := range []*Dir{alive, next} {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", d.Path, err)
		}
	}
}

// A program that is killed says so, and one that has ended needs no signal.
func TestProcess_kill(t *testing.T) {
	p, err := Start("", exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
		t.Fatal(p.Wait())
	default:
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.Kill()); err != nil {
		t.Errorf("of one that has ended: %v", err)
	}
}

// What does not begin is an error, also where there is no such namespace.
func TestStart_fails(t *testing.T) {
	if _, err := Start("", exec.Command(filepath.Join(t.TempDir(), "nothing"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := Start("weft-nosuch", exec.Command("true")); err == nil || !strings.Contains(err.Error(), "weft-nosuch") {
		t.Errorf("%v", err)
	}
}
