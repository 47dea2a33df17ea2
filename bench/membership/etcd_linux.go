package membership

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"weft/bench/child"
)

// members is how many members of etcd there are.
const members = 3

// CheckPrograms says what is to be installed.
func CheckPrograms() error {
	if _, err := exec.LookPath("etcd"); err != nil {
		return errors.New("the program etcd, on which hosts register, is missing: apt install etcd-server")
	}
	return nil
}

// cluster is members of etcd, which reach each other by relays.
type cluster struct {
	dir     *child.Dir
	clients [members]string
	peers   [members]string
	relays  [members]*relay // before peers
	run     [members]*child.Process

	mu       sync.Mutex
	ids      map[string]int // by what they call themselves among each other
	isolated [members]*valve
	client   http.Client
}

// newCluster starts the members, and waits until they have a leader.
func newCluster(ctx context.Context) (c *cluster, err error) {
	if err := CheckPrograms(); err != nil {
		return nil, err
	}
	c = &cluster{ids: make(map[string]int), client: http.Client{Timeout: time.Second}}
	if c.dir, err = child.TempDir("weft-membership-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	free, err := freePorts(2 * members)
	if err != nil {
		return nil, err
	}
	for i := range members {
		c.clients[i], c.peers[i], c.isolated[i] = free[i], free[members+i], newValve()
	}
	for i := range members {
		if c.relays[i], err = newRelay(c.peers[i], true, func(from string) <-chan struct{} { return c.pass(from, i) }); err != nil {
			return nil, err
		}
	}
	for i := range members {
		if err := c.start(i); err != nil {
			return nil, err
		}
	}
	err = c.await(ctx, "all members of etcd answer", func() bool {
		for i := range members {
			s, err := c.status(i)
			if err != nil || s.Leader == "0" || s.Leader == "" {
				return false
			}
			n, err := strconv.ParseUint(s.Header.Member, 10, 64)
			if err != nil {
				return false
			}
			c.mu.Lock()
			c.ids[strconv.FormatUint(n, 16)] = i
			c.mu.Unlock()
		}
		return true
	})
	return c, err
}

// freePorts are addresses on which nobody listens.
func freePorts(n int) (list []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// pass is whether a member's traffic to another one passes. One that is isolated has none.
func (c *cluster) pass(from string, to int) <-chan struct{} {
	c.mu.Lock()
	i, ok := c.ids[from]
	c.mu.Unlock()
	if ok && c.isolated[i].isCut() {
		return c.isolated[i].pass("")
	}
	return c.isolated[to].pass("")
}

// start starts a member, for the first time or again.
func (c *cluster) start(i int) error {
	var initial []string
	for j, r := range c.relays {
		initial = append(initial, fmt.Sprintf("m%d=http://%s", j, r.address()))
	}
	p := exec.Command("etcd", "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(c.dir.Path, fmt.Sprint("m", i)), "--logger", "zap", "--log-level", "error",
		"--listen-client-urls", "http://"+c.clients[i], "--advertise-client-urls", "http://"+c.clients[i],
		"--listen-peer-urls", "http://"+c.peers[i], "--initial-advertise-peer-urls", "http://"+c.relays[i].address(),
		"--initial-cluster", strings.Join(initial, ","))
	for _, v := range os.Environ() { // it ends if a variable and a flag say the same
		if !strings.HasPrefix(v, "ETCD_") {
			p.Env = append(p.Env, v)
		}
	}
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run, err := child.Start("", p)
	c.run[i] = run
	return err
}

// etcdStatus is what a member says of itself.
type etcdStatus struct {
	Header struct {
		Member string `json:"member_id"`
	} `json:"header"`
	Leader string `json:"leader"`
}

func (c *cluster) status(i int) (s etcdStatus, err error) {
	r, err := c.client.Post("http://"+c.clients[i]+"/v3/maintenance/status", "application/json", strings.NewReader("{}"))
	if err != nil {
		return s, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return s, fmt.Errorf("etcd: %s", r.Status)
	}
	return s, json.NewDecoder(r.Body).Decode(&s)
}

// call asks a member of etcd, and the others if it does not answer.
func (c *cluster) call(ctx context.Context, what string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	err = errors.New("etcd: no member answers")
	for i := range members {
		if err = c.ask(ctx, i, what, text, answer); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (c *cluster) ask(ctx context.Context, i int, what string, text []byte, answer any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.clients[i]+"/v3/"+what, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r, err := c.client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", what, r.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(r.Body).Decode(answer)
}

// leader returns the member that leads, -1 if none does.
func (c *cluster) leader(but int) int {
	for i := range members {
		if i == but {
			continue
		}
		if s, err := c.status(i); err == nil && s.Leader == s.Header.Member {
			return i
		}
	}
	return -1
}

// awaitLeader waits until there is a leader other than one.
func (c *cluster) awaitLeader(ctx context.Context, but int) (leader int, err error) {
	err = c.await(ctx, "etcd has a leader", func() bool { leader = c.leader(but); return leader >= 0 })
	return leader, err
}

// patience is how long busy processors are waited for.
const patience = 2 * time.Minute

func (c *cluster) await(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s", patience, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (c *cluster) close() error {
	var errs []error
	for _, p := range c.run {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	for _, r := range c.relays {
		if r != nil {
			r.close()
		}
	}
	c.client.CloseIdleConnections()
	return errors.Join(append(errs, c.dir.Remove())...)
}
