package interop

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// syncBuffer is what one process writes and a test reads meanwhile.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// daemon is weft host on a host.
type daemon struct {
	*process
	node string
	file string
}

// weft starts a daemon on a host and waits until it is at work.
func (n *network) weft(node, config string) *daemon {
	n.Helper()
	d := &daemon{node: node, file: n.file(node+".yaml", []byte(inGateway(config)))}
	weft := binary(n.T)
	n.Cleanup(func() { // once it has been killed, if it has not ended
		n.lab.Do(n.node(node).ID, exec.Command(weft, "host", "--cleanup").Run)
	})
	d.process = n.start(node, weft, "host", "--config", d.file)
	d.says("mode ")
	return d
}

// inGateway returns a configuration of mode gateway where it names no mode.
func inGateway(config string) string {
	if strings.Contains("\n"+config, "\nmode: ") {
		return config
	}
	return "mode: gateway\n" + config
}

// signal sends a signal to the daemon; end waits for what it does then.
func (d *daemon) signal(s syscall.Signal) {
	d.n.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.n.Fatal(err)
	}
}

func (d *daemon) end(s syscall.Signal) {
	d.n.Helper()
	d.signal(s)
	if out, err := d.wait(); s == syscall.SIGTERM && err != nil {
		d.n.Errorf("%s: %v\n%s", d.node, err, out)
	}
}

// reload gives the daemon another configuration and waits for what it says.
func (d *daemon) reload(config string) (says string) {
	d.n.Helper()
	d.n.file(d.node+".yaml", []byte(inGateway(config)))
	had := len(d.messages())
	d.signal(syscall.SIGHUP)
	d.n.eventually(d.node+" reloads", func() bool {
		says = d.messages()[had:]
		return strings.HasSuffix(says, "\n")
	})
	return says
}

// status is what weft status --json says, by the path of a field.
func (d *daemon) status() map[string]string {
	d.n.Helper()
	var any map[string]any
	d.n.ask(d.node, &any)
	fields := make(map[string]string)
	flatten(fields, "", any)
	return fields
}

func flatten(to map[string]string, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			flatten(to, strings.TrimPrefix(name+"."+k, "."), x)
		}
	case []any:
		for i, x := range v {
			flatten(to, name+"."+strconv.Itoa(i), x)
		}
	case float64:
		to[name] = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		to[name] = fmt.Sprint(v)
	}
}

// count is a number of the status.
func (d *daemon) count(field string) int {
	d.n.Helper()
	s := d.status()
	i, err := strconv.Atoi(s[field])
	if err != nil {
		d.n.Fatalf("%s: status has no number %s: %v", d.node, field, s)
	}
	return i
}
