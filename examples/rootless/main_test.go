//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/examples/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestRootless_twoProcesses(t *testing.T) {
	bin, dir := exampletest.PublicDir(t), exampletest.PublicDir(t)
	binary := exampletest.Binary(t, bin)
	const size = 20 << 20
	want := sha256.New()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err == nil {
		_, err = io.CopyN(io.MultiWriter(f, want), rand.NewChaCha8([32]byte{3}), size)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", strings.Repeat("0a", 32)} {
		t.Run(fmt.Sprintf("key %q", key), func(t *testing.T) {
			ports := exampletest.FreePorts(t)
			messages := exampletest.NewOutput("serving")
			server := exampletest.Command(t, binary, "-listen", ports[0], "-peer", ports[1], "-key", key, "-serve", dir)
			server.Stderr = messages
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			select { // before it listens, its host refuses
			case <-messages.Said():
			case <-time.After(time.Minute):
				t.Fatal("the server does not listen")
			}
			got := sha256.New()
			client := exampletest.Command(t, binary, "-listen", ports[1], "-peer", ports[0], "-key", key, "-get", "file")
			client.Stdout, client.Stderr = got, os.Stderr
			if err := client.Run(); err != nil {
				t.Errorf("client: %v", err)
			}
			if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
				t.Error("another file arrived")
			}
			server.Process.Signal(syscall.SIGTERM)
			if err := server.Wait(); err != nil {
				t.Errorf("server: %v\n%s", err, messages)
			}
		})
	}
}

func TestRootless_saysWhichFlagIsWrong(t *testing.T) {
	self, other := end{"client", clientAddr}, end{"server", serverAddr}
	for _, c := range []struct{ listen, peer, key, want string }{
		{"", "127.0.0.1:9", "", "-listen"},
		{"127.0.0.1:0", "127.0.0.1", "", "-peer"},
		{"127.0.0.1:0", "127.0.0.1:9", "0a", "-key"},
	} {
		h, err := open(c.listen, c.peer, c.key, "presto", self, other)
		if err == nil {
			h.Close()
			t.Errorf("%+v: no error", c)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
