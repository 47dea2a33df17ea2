package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/internal/bugreport"
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
		"udp:\n  private_key_file: "+secretFile()+"\n  peers:\n    - name: far-away\n      key: \""+canary()+"\"\n      accept_key: >-\n        "+canary()+"\n      key_file: "+secretFile()+"\n      accept_key_file: "+secretFile()+"\n")
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
	goroutines := "goroutine "
	if os.Geteuid() != 0 {
		goroutines = "-- this part failed: " // only root may see them
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
		"goroutines.txt":             goroutines,
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

// Of the kernel's settings and of the environment nothing is in the report that is a secret, and no
// list of peers.
func TestBugreport_systemPartsHaveNoSecrets(t *testing.T) {
	text, err := settings()
	if err != nil || !strings.Contains(string(text), "net.ipv4.tcp_rmem = ") {
		t.Fatalf("%v: %.200s", err, text)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, " = "); strings.Contains(name, "key") {
			t.Errorf("the settings have %s", name)
		}
	}
	for _, c := range systemCommands {
		if strings.Contains(c.line, "tcp_metrics") {
			t.Errorf("%s tells of peers", c.line)
		}
	}
	got := string(environment([]string{"WEFT_X=1", "GOGC=50", "PATH=/bin", "GOPROXY=https://canary", "GOAUTH=canary", "PATHS=canary", "HOME=canary"}))
	if got != "WEFT_X=1\nGOGC=50\nPATH=/bin\n" {
		t.Errorf("of the environment it has %q", got)
	}
}

// Configurations of one name all are in the report, with a topology that stands beside its
// configuration. Weft's own that are not there are left out.
func TestBugreport_configurations(t *testing.T) {
	dir := t.TempDir()
	f := bugreportFlags{}
	for _, in := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, in), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"host.yaml": "topology: fabric.yaml\n# of " + in, "fabric.yaml": "fabric of " + in} {
			if err := os.WriteFile(filepath.Join(dir, in, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f.configs = append(f.configs, filepath.Join(dir, in, "host.yaml"))
	}
	var all []string
	for _, p := range f.configurations() {
		text, err := p.get(t.Context())
		if !strings.HasSuffix(p.name, ".check.txt") && err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		_, of, _ := strings.Cut(string(text), " of ")
		all = append(all, p.name+" "+of)
	}
	want := []string{"config/host.yaml a", "config/host.yaml.check.txt ", "config/topology-fabric.yaml a",
		"config/2-host.yaml b", "config/2-host.yaml.check.txt ", "config/2-topology-fabric.yaml b"}
	if !slices.Equal(all, want) {
		t.Errorf("the parts are %q, not %q", all, want)
	}
	none := bugreportFlags{configs: []string{filepath.Join(dir, "none.yaml")}, defaults: true}
	if list := none.configurations(); len(list) > 0 {
		t.Errorf("%s is not there, and a part of the report", list[0].name)
	}
}

// What many commands print together is bounded while it is gathered.
func TestPrograms_isBounded(t *testing.T) {
	lines := slices.Repeat([]string{"head -c 3000000 /dev/zero"}, 5)
	text, err := programs(lines)(t.Context())
	if len(text) > 2*bugreport.MaxPart || err == nil || !strings.Contains(err.Error(), "3 of 5 commands were not run") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
