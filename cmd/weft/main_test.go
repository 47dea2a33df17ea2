package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram makes the test's program weft.
const asProgram = "WEFT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program prepares weft as a process of its own.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// weft runs the command line and returns what it prints.
func weft(t testing.TB, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRootCmd()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{}, args...)) // nil would have it read those of the test program
	err := execute(t.Context(), cmd)
	return out.String(), err
}

func mustWeft(t testing.TB, args ...string) string {
	t.Helper()
	out, err := weft(t, args...)
	if err != nil {
		t.Fatalf("weft %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// wantError checks that a command fails with all of the words in its message.
func wantError(t *testing.T, args string, words ...string) {
	t.Helper()
	_, err := weft(t, strings.Fields(args)...)
	if err == nil {
		t.Errorf("weft %s: no error", args)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("weft %s: error %q does not say %q", args, err, w)
		}
	}
}
