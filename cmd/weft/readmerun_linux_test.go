package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/bench/testbed"
	"weft/internal/slowtest"
)

// readmeShell is what runs README's commands: a shell in namespaces of its own, in which the
// machine has no lab, no daemon and nothing of weft, and the copy is where the project is, so that
// Go has compiled it before. It is the first process there: all others end with it.
const readmeShell = `
set -u
mount --make-rprivate /
mount --bind "$COPY" "$PROJECT"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/etc /run/work /run/bin
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work /etc || exit
rm -rf /etc/weft
mount --bind /run/bin /usr/local/bin
ip link set lo up
cd "$PROJECT"
work() { # COMMAND DONE
	eval "$1" || return
	[ -z "$2" ] || await "$2"
}
await() {
	local n
	for n in {1..600}; do
		eval "$1" >/dev/null 2>&1 && return
		sleep 0.2
	done
	echo "not within 2 minutes: $1"
	return 1
}
step() { # NUMBER COMMAND DONE
	local began=$EPOCHREALTIME status=0
	work "$2" "$3" >"$OUT/$1" 2>&1 </dev/null || status=$?
	echo "$1 $status $began $EPOCHREALTIME" >&3
	[ $status = 0 ] || exit 1
}
`

// readmeScript has the shell do all steps, numbered.
func readmeScript() string {
	var b strings.Builder
	b.WriteString(readmeShell)
	number := 0
	for _, block := range readme {
		for _, s := range block {
			what, done := s.in(s.text()), s.done
			if done != "" {
				done = s.in(done)
			}
			if s.stays {
				what += " &"
			}
			if s.at != "" && number > 0 {
				// The machine of a reader who has a fabric.
				b.WriteString("[ -n \"${fabric:-}\" ] || weft lab up >&2; fabric=up\n")
			}
			fmt.Fprintf(&b, "step %d %s %s\n", number, quote(what), quote(done))
			number++
		}
		b.WriteString("kill $(jobs -p) 2>/dev/null; wait\n")
	}
	return b.String()
}

// text is what runs.
func (s readmeStep) text() string {
	if s.run == "" || slowtest.Long() && strings.HasPrefix(s.run, s.command) {
		return s.command
	}
	return s.run
}

// in is a command where the step runs.
func (s readmeStep) in(command string) string {
	if s.at == "" {
		return command
	}
	return "weft lab exec " + s.at + " -- bash -c " + quote(command)
}

// quote has a shell take a text as one word.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// README's commands do what it says, in its order, for a reader who has a clean checkout and a
// machine without weft. A file is fetched by one connection over several paths.
func TestReadme_run(t *testing.T) {
	slowtest.Unraced(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: runs what README has its reader run as root")
	}
	if err := testbed.CanUseNamespaces(); err != nil {
		t.Skip(err)
	}
	for _, program := range []string{"bash", "curl", "git", "go", "ip", "mount", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: %v", program, err)
		}
	}
	outputs, took := runReadme(t)
	first := time.Duration(0)
	number, sprayed := 0, ""
	for _, block := range readme {
		for _, s := range block {
			if number < len(took) {
				t.Logf("%6.1f s  %s%s", took[number].Seconds(), s.command, s.instead())
				if sprayed == "" {
					first += took[number]
				}
				if strings.HasSuffix(s.command, " -- weft status") {
					sprayed = outputs[number]
				}
			}
			number++
		}
	}
	if len(took) < number {
		t.Fatal("it ended before the last command")
	}
	t.Logf("from the first command to the shares of the connection's paths: %.1f s", first.Seconds())
	most, paths := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^c\d\.\d +\S+ +(\d+) %.*$`).FindAllStringSubmatch(sprayed, -1) {
		t.Log(m[0])
		share, _ := strconv.Atoi(m[1])
		most = max(most, share)
		if share > 0 {
			paths++
		}
	}
	if paths < 3 || most > 60 {
		t.Errorf("%d paths, of which one carried %d %%:\n%s", paths, most, sprayed)
	}
}

func (s readmeStep) instead() string {
	if s.text() == s.command {
		return ""
	}
	return "\n          (in its place: " + s.text() + "; " + s.why + ")"
}

// runReadme returns what the commands printed, and how long each took, up to the first that failed.
func runReadme(t *testing.T) (outputs []string, took []time.Duration) {
	t.Helper()
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := append(os.Environ(), "PROJECT="+project, "COPY="+filepath.Join(dir, "copy"), "OUT="+filepath.Join(dir, "out"))
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	checkout := exec.Command("git", "checkout-index", "-a", "--prefix="+filepath.Join(dir, "copy")+"/")
	checkout.Dir = project
	if out, err := checkout.CombinedOutput(); err != nil {
		t.Skipf("the project is no checkout of git: %v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "PATH="+filepath.Join(strings.TrimSpace(string(root)), "bin")+":/usr/local/bin:"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Choose(8*time.Minute, 25*time.Minute))
	defer cancel()
	steps, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer steps.Close()
	shell := exec.CommandContext(ctx, "bash", "-c", readmeScript())
	shell.Env, shell.ExtraFiles = env, []*os.File{report}
	shell.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	var said strings.Builder
	shell.Stdout, shell.Stderr = &said, &said
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	report.Close()
	for lines := bufio.NewScanner(steps); lines.Scan(); {
		var number, status int
		var began, ended float64
		if _, err := fmt.Sscan(lines.Text(), &number, &status, &began, &ended); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		out, err := os.ReadFile(filepath.Join(dir, "out", strconv.Itoa(number)))
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, string(out))
		took = append(took, time.Duration((ended-began)*1e9))
		if status != 0 {
			t.Errorf("command %d of README ended with %d:\n%s", number+1, status, out)
		}
	}
	if err := shell.Wait(); err != nil {
		t.Errorf("the shell: %v (%v)\n%s", err, ctx.Err(), said.String())
	}
	return outputs, took
}
