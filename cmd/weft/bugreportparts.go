package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"weft/internal/bugreport"
	"weft/internal/config"
	"weft/internal/daemon"
	"weft/internal/kernel"
	"weft/internal/switchd"
)

// command is what a command of weft prints. An error is a part's, such as of a command that
// this version has not.
func command(args ...string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, partTime)
		defer cancel()
		var out bytes.Buffer
		root := newRootCmd()
		if c, _, err := root.Find(args[:1]); err != nil || c == root {
			return nil, fmt.Errorf("this weft has no command %s", args[0])
		}
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		err := execute(ctx, root)
		return out.Bytes(), err
	}
}

// configurations are the files of the daemons, what weft finds wrong with them, and the
// topologies that they name. One that nobody has asked for is left out if it is not there.
func (f bugreportFlags) configurations() (list []reportPart) {
	taken := make(map[string]bool)
	for _, name := range f.configs {
		text, err := config.ReadInput(name, config.MaxBytes)
		if errors.Is(err, fs.ErrNotExist) && f.defaults {
			continue
		}
		in := unused(taken, filepath.Base(name))
		list = append(list, reportPart{in, func(context.Context) ([]byte, error) { return text, err }})
		if err != nil {
			continue
		}
		of := "host"
		if strings.Contains(filepath.Base(name), "switch") {
			of = "switch"
		}
		list = append(list, reportPart{unused(taken, filepath.Base(in)+".check.txt"), command(of, "--check", "--config", name)})
		if m := topologyFile.FindSubmatch(text); m != nil {
			file := string(m[1])
			if beside := filepath.Join(filepath.Dir(name), file); !filepath.IsAbs(file) {
				if _, err := os.Stat(beside); err == nil { // else it is where the daemon was started
					file = beside
				}
			}
			list = append(list, reportPart{unused(taken, "topology-"+filepath.Base(file)),
				func(context.Context) ([]byte, error) { return config.ReadInput(file, maxInput) }})
		}
	}
	return list
}

// unused returns the name of a part in config that no other has: a further one of a name has a
// number before it.
func unused(taken map[string]bool, name string) string {
	in := filepath.Join("config", name)
	for n := 2; taken[in]; n++ {
		in = filepath.Join("config", fmt.Sprintf("%d-%s", n, name))
	}
	taken[in] = true
	return in
}

// topologyFile is the file that a configuration names as its topology.
var topologyFile = regexp.MustCompile(`(?m)^topology:\s*["']?([^"'\s#]+\.ya?ml)`)

// connections counts the kernel's TCP connections, without saying to whom they lead.
func (f bugreportFlags) connections(context.Context) ([]byte, error) {
	all, err := kernel.Connections()
	if err != nil {
		return nil, err
	}
	var sum struct {
		Connections int    `json:"connections"`
		Waiting     int    `json:"waiting_for_a_timeout"`
		Sent        uint64 `json:"sent_bytes"`
		Received    uint64 `json:"received_bytes"`
		Segments    uint64 `json:"segments"`
		Resent      uint64 `json:"resent_segments"`
		Needless    uint64 `json:"needless_segments"`
		OutOfOrder  uint64 `json:"out_of_order_segments"`
	}
	for _, c := range all {
		sum.Connections++
		if c.Timeouts > 0 {
			sum.Waiting++
		}
		sum.Sent += c.Sent
		sum.Received += c.Received
		sum.Segments += uint64(c.Segments)
		sum.Resent += uint64(c.Resent)
		sum.Needless += uint64(c.Needless)
		sum.OutOfOrder += uint64(c.OutOf)
	}
	return json.MarshalIndent(sum, "", "  ")
}

// sockets are those at which a daemon may answer here.
func (f bugreportFlags) sockets() (list []string) {
	if f.socket != "" {
		return []string{f.socket}
	}
	for _, find := range []func() (string, error){daemon.StatusSocket, switchd.StatusSocket} {
		if path, err := find(); err == nil {
			list = append(list, path)
		}
	}
	return list
}

// ask is what the daemon answers to an HTTP request at its status socket.
func (f bugreportFlags) ask(what string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) (text []byte, err error) {
		err = fmt.Errorf("no daemon runs in this network namespace")
		for _, socket := range f.sockets() {
			if _, gone := os.Stat(socket); gone != nil && f.socket == "" {
				continue
			}
			if text, err = askHTTP(ctx, socket, what); err == nil {
				return text, nil
			}
		}
		return text, err
	}
}

func askHTTP(ctx context.Context, socket, what string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://weft"+what, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 2*bugreport.MaxPart))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", socket, resp.Status)
	}
	return text, err
}
