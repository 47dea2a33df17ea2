package daemon

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"

	"weft/internal/service"
)

// children are the daemons of a network, in the order of their start.
type children struct {
	mu  sync.Mutex
	all []*child
}

func (l *children) add(c *child) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
}

func (l *children) remove(c *child) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o *child) bool { return o == c })
}

// explain logs what shows why a connection does not go on: what the kernels of some hosts say
// of their sockets and queues, and the status of all daemons. It fails nothing.
func (n *network) explain(hosts ...string) {
	n.Helper()
	run := func(host, what string, command ...string) {
		err := n.lab.Do(n.node(host).ID, func() error {
			out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
			n.Logf("%s: %s:\n%s", host, what, out)
			return err
		})
		if err != nil {
			n.Logf("%s: %s: %v", host, what, err)
		}
	}
	for _, host := range hosts {
		run(host, "sockets", "ss", "-tinmoe")
		run(host, "what the kernel counts", "sh", "-c", "nstat -as | grep -vE ' 0  +0.0'; ip -s link; tc -s qdisc; ip rule; ip route show cache; ip route show table all | grep -E 'mtu|weft'; cat /proc/loadavg")
	}
	n.children.mu.Lock()
	all := slices.Clone(n.children.all)
	n.children.mu.Unlock()
	for _, c := range all {
		err := n.lab.Do(n.node(c.node).ID, func() error {
			socket, err := StatusSocket()
			if err != nil {
				return err
			}
			text, err := service.AskStatus(n.Context(), socket, "weft host")
			for try := 0; try < 3 && errors.Is(err, os.ErrDeadlineExceeded); try++ {
				text, err = service.AskStatus(n.Context(), socket, "weft host")
			}
			n.Logf("%s: status:\n%s", c.node, text)
			return err
		})
		if err != nil {
			n.Logf("%s: status: %v", c.node, err)
		}
	}
}
