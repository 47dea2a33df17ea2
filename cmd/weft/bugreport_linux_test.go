package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"weft/internal/config"
	"weft/internal/daemon"
	"weft/internal/switchd"
)

// unpacked reads an archive, by the names of its parts.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	parts := make(map[string]string)
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		parts[name] = string(text)
	}
}

// secretKeys lists the keys of a configuration that hold a secret, or name a file that does.
func secretKeys(of reflect.Type) (keys []string) {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for i := range of.NumField() {
		key, _ := config.Tag(of.Field(i))
		if key == "" {
			continue
		}
		if name := strings.TrimSuffix(key, "_file"); of.Field(i).Type.Kind() == reflect.String && config.IsSecret(name) && !strings.HasSuffix(name, "_id") {
			keys = append(keys, key)
		}
		keys = append(keys, secretKeys(of.Field(i).Type)...)
	}
	return keys
}

// The archive of a machine whose configurations, files, environment and daemon have a secret
// wherever one may be has none of them. What is no secret is in it.
func TestBugreport_hasNoSecrets(t *testing.T) {
	dir := t.TempDir()
	canaries := 0
	canary := func() string { canaries++; return fmt.Sprintf("canary-%d-x7f3a", canaries) }
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	secretFile := func() string { return write(fmt.Sprintf("secret%d.key", canaries), canary()+"\n") }
	keyed := "    - {id: 1, key: %s}\n    - id: 2\n      key_file: %s\n    # key: %s\n"
	hostFile := write("host.yaml", "topology: fabric.yaml\npolicy: drb\nbgp:\n  as: 4200000001\n  password_file: "+secretFile()+"\n  password: "+canary()+"\n"+
		"failures:\n  keys:\n"+fmt.Sprintf(keyed, canary(), secretFile(), canary())+
		"udp:\n  peers:\n    - name: far-away\n      key: \""+canary()+"\"\n      accept_key: >-\n        "+canary()+"\n      key_file: "+secretFile()+"\n      accept_key_file: "+secretFile()+"\n")
	switchFile := write("switch.yaml", "node: e0.0\nkeys:\n"+fmt.Sprintf(keyed, canary(), secretFile(), canary()))
	broken := write("broken.yaml", "keys:\n  - key: "+canary()+"\n\tbroken: [\npassword: "+canary()+"\n")
	for file, of := range map[string]any{hostFile: daemon.Config{}, switchFile: switchd.File{}} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		keys := secretKeys(reflect.TypeOf(of))
		if len(keys) < 2 {
			t.Fatalf("of %T, %q alone hold secrets", of, keys)
		}
		for _, key := range keys {
			if !strings.Contains(string(text), key+": ") {
				t.Errorf("%s has no canary in %s", file, key)
			}
		}
	}
	t.Setenv("WEFT_TOKEN", canary())
	t.Setenv("GOPASSWORD", canary())
	socket := answering(t, map[string]any{"policy": "drb", "token": canary(), "note": "the key canary-1-x7f3a is wrong"})
	out := filepath.Join(dir, "report.tar.gz")
	printed := mustWeft(t, "bugreport", "-o", out, "--socket", socket, "--config", hostFile, "--config", switchFile, "--config", broken)
	for _, w := range []string{out, "Addresses", "before you pass it on"} {
		if !strings.Contains(printed, w) {
			t.Errorf("does not print %q: %s", w, printed)
		}
	}
	if i, err := os.Stat(out); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", i, err)
	}
	parts := unpacked(t, out)
	for name, text := range parts {
		for i := 1; i <= canaries; i++ {
			if c := fmt.Sprintf("canary-%d-x7f3a", i); strings.Contains(text, c) {
				t.Errorf("%s has %s", name, c)
			}
		}
	}
	for name, want := range map[string]string{
		"version.json":               `"go": "`,
		"status.json":                `"policy": "drb"`,
		"config/host.yaml":           "far-away",
		"config/switch.yaml":         "node: e0.0",
		"config/broken.yaml":         "keys:",
		"system/sysctl.txt":          "net.ipv4.ip_forward = ",
		"system/environment.txt":     "WEFT_TOKEN=",
		"network/address.txt":        "ip -d address",
		"metrics.txt":                "go_goroutines",
		"goroutines.txt":             "goroutine ",
		"connections.json":           `"connections"`,
		"README.txt":                 "Addresses and names of hosts are in it",
		"blame.json":                 "-- this part failed: ",
		"config/host.yaml.check.txt": "-- this part failed: ",
	} {
		if !strings.Contains(parts[name], want) {
			t.Errorf("%s does not say %q: %.300s", name, want, parts[name])
		}
	}
	if canaries < 12 {
		t.Errorf("%d canaries", canaries)
	}
}

// Where nothing runs and no file is there the parts that need them say so, and the rest is there.
func TestBugreport_ofAMachineWithoutWeft(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "r.tar.gz")
	printed := mustWeft(t, "bugreport", "-o", out, "--socket", filepath.Join(dir, "none.sock"), "--config", filepath.Join(dir, "none.yaml"))
	if !strings.Contains(printed, "could not be had") {
		t.Errorf("prints %s", printed)
	}
	parts := unpacked(t, out)
	for name, want := range map[string]string{
		"status.json":      "none.sock",
		"metrics.txt":      "-- this part failed",
		"config/none.yaml": "there is no such file",
		"version.json":     `"go": "`,
	} {
		if !strings.Contains(parts[name], want) {
			t.Errorf("%s does not say %q: %.300s", name, want, parts[name])
		}
	}
	_, err := weft(t, "bugreport", "-o", out)
	if err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("an archive is written over: %v", err)
	}
}
