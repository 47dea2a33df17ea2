package main

import (
	"bufio"
	"context"
	"errors"
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

// readmePrepare makes the machine of README's reader, in namespaces of its own: it has no lab, no
// daemon and nothing of weft, and the copy is where the project is, so that Go has compiled it
// before. If a part of it fails, nothing else is done: what follows would change the real machine.
const readmePrepare = `
set -euE
trap 'echo "cannot prepare: $BASH_COMMAND" >&2; exit 77' ERR
mount --make-rprivate /
mount --bind "$COPY" "$PROJECT"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/etc /run/work /run/bin
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work /etc
rm -rf /etc/weft
mount --bind /run/bin /usr/local/bin
ip link set lo up
cd "$PROJECT"
trap - ERR
set +eE
`

// notPrepared is the status of a shell that readmePrepare has ended.
const notPrepared = 77

// readmeShell is what runs README's commands. It is the first process of its namespaces: all others
// end with it.
const readmeShell = readmePrepare + `
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
finally() { # NUMBER DONE
	await "$2" && return
	jobs -rl
	[ "$1" -lt 0 ] || cat "$OUT/$1"
	exit 1
} >&2
`

// readmeScript has the shell do all steps, numbered. It does a block as a shell does one that is
// pasted: a command begins once the one before has returned, and one that ends in & returns at once.
// Whether these have done their work is asked at the block's end. In the end all have ended: those
// in the lab, and its agents, with the lab.
func readmeScript() string {
	var b strings.Builder
	b.WriteString(readmeShell)
	number := 0
	for _, block := range readme {
		var later strings.Builder
		for _, s := range block {
			what, done := s.in(s.text()), s.done
			if done != "" {
				done = s.in(done)
			}
			if s.at != "" {
				// The machine of a reader who has a fabric.
				b.WriteString("[ -n \"${fabric:-}\" ] || weft lab up >&2; fabric=up\n")
			}
			switch {
			case s.stays:
				what += " & stay=$!"
			case s.beside():
				fmt.Fprintf(&later, "finally %d %s\n", number, quote(done))
				done = ""
			}
			fmt.Fprintf(&b, "step %d %s %s\n", number, quote(what), quote(done))
			if s.stays { // its reader is in another terminal meanwhile
				b.WriteString("stays=\"${stays:-} $stay\"\n")
			}
			number++
		}
		b.WriteString(later.String())
		b.WriteString("[ -z \"${stays:-}\" ] || { kill $stays 2>/dev/null; wait $stays; stays=; }\n")
	}
	b.WriteString("finally -1 '[ -z \"$(jobs -rp)\" ]'\n")
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
	if err := copyTree(project, filepath.Join(dir, "copy")); err != nil {
		t.Fatal(err)
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
	if err := shell.Start(); errors.Is(err, os.ErrPermission) {
		t.Skipf("no namespaces for what README has its reader run: %v", err)
	} else if err != nil {
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
	if err := shell.Wait(); shell.ProcessState.ExitCode() == notPrepared {
		t.Skipf("the machine of README's reader cannot be made here:\n%s", &said)
	} else if err != nil {
		t.Errorf("the shell: %v (%v)\n%s", err, ctx.Err(), said.String())
	}
	return outputs, took
}

// copyTree copies what git has of a project, and what is new in it, as it is in the directory.
func copyTree(project, to string) error {
	list := exec.Command("git", "ls-files", "-coz", "--exclude-standard")
	list.Dir = project
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", list, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from, path := filepath.Join(project, name), filepath.Join(to, name)
		info, err := os.Lstat(from)
		switch {
		case errors.Is(err, os.ErrNotExist): // deleted, and not yet from git
			continue
		case err != nil:
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		switch {
		case info.IsDir(): // a repository within, such as another worktree
		case info.Mode()&os.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(from); err == nil {
				err = os.Symlink(target, path)
			}
		default:
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(path, text, info.Mode().Perm())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// If a part of the preparation fails, nothing that would follow is done, neither of the preparation
// nor of README. The programs here are not the real ones.
func TestReadme_refusedMount(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	const fake = "#!/bin/bash\n" + `echo "${0##*/} $*" >>"$DONE"
n=0; while read -r line; do n=$((n+1)); done <"$DONE"
[ $n != "$REFUSED" ]
`
	bin, project := t.TempDir(), t.TempDir()
	for _, name := range []string{"mount", "mkdir", "rm", "ip", "step"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(strings.Replace(fake, "#!/bin/bash", "#!"+bash, 1)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(refused int) (done []string, status int) {
		file := filepath.Join(t.TempDir(), "done")
		shell := exec.Command(bash, "-c", readmePrepare+"step\n")
		shell.Env = []string{"PATH=" + bin, "DONE=" + file, "COPY=" + bin, "PROJECT=" + project, "REFUSED=" + strconv.Itoa(refused)}
		out, err := shell.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		done = strings.Split(strings.TrimSpace(string(text)), "\n")
		if refused > 0 && !strings.Contains(string(out), "cannot prepare: "+strings.Fields(done[len(done)-1])[0]) {
			t.Errorf("it does not say what failed:\n%s", out)
		}
		return done, shell.ProcessState.ExitCode()
	}
	all, status := run(0)
	if status != 0 || len(all) < 10 || all[0] != "mount --make-rprivate /" || all[len(all)-1] != "step" {
		t.Fatalf("%d, %q", status, all)
	}
	for refused := 1; refused < len(all); refused++ {
		if done, status := run(refused); status != notPrepared || len(done) != refused {
			t.Errorf("%q fails: status %d, and done is %q", all[refused-1], status, done)
		}
	}
}
