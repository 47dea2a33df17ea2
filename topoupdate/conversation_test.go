package topoupdate

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// Conversations are what an Agent or a Listener is told, in testdata/conversations/
// NAME/in.txt, and what it then says and believes, in out.txt; -update rewrites the
// latter. A line of in.txt is one of
//
//	topology SPEC, self NODE, require, hello D, hold D, key ID FROM SECRET, boot N
//	TIME port N carrier up|down
//	TIME port N talks            a neighbour that sends hellos from now on, and answers
//	TIME port N quiet            no longer
//	TIME port N deaf             sends, but hears no more
//	TIME port N hello OPTION...  one hello
//	TIME port N update OPTION... NODE/INCARNATION/SEQUENCE/AGE/PORTS...
//	TIME port N replay           the last message to this port, once more
//	TIME keys ID:FROM:SECRET...  other keys
//	TIME leave, TIME run
//
// with the options session=N, heard=N, counter=N, down, leaving, key=ID, forged.
// In out.txt, hellos are left out that say the same as the one before.
type conversation struct {
	t        *testing.T
	top      *topology.Topology
	self     topology.NodeID
	config   AgentConfig
	keys     Keys
	agent    *Agent
	listener *Listener
	ring     *Keyring
	now      time.Duration
	peers    map[int]*speaker
	out      strings.Builder
	shown    *topology.Topology
	rejects  Rejects
	said     map[int]string
}

// speaker is the scripted neighbour at one port.
type speaker struct {
	port          topology.Port
	session       uint64
	counter       uint64
	heard         uint64 // the agent's session
	last          []byte
	talking, deaf bool
	due           time.Duration
}

func TestConversations(t *testing.T) {
	dirs, err := filepath.Glob("testdata/conversations/*/in.txt")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, in := range dirs {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			script, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			got := converse(t, string(script))
			file := filepath.Join(dir, "out.txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("it says\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func converse(t *testing.T, script string) string {
	c := &conversation{t: t, peers: map[int]*speaker{}, said: map[int]string{}}
	c.config = AgentConfig{
		Boot: 1000, Hello: time.Second, Refresh: 100 * time.Second, Repeat: 50 * time.Second,
		Damping: Damping{Hold: 2 * time.Second, Max: 16 * time.Second, Forget: time.Minute},
	}
	for n, line := range strings.Split(script, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if err := c.line(words); err != nil {
			t.Fatalf("line %d: %q: %v", n+1, line, err)
		}
	}
	return c.out.String()
}

func (c *conversation) line(words []string) (err error) {
	at, isTime := time.ParseDuration(words[0])
	if isTime != nil {
		return c.configure(words)
	}
	if c.agent == nil && c.listener == nil {
		if err := c.begin(); err != nil {
			return err
		}
	}
	c.until(at)
	fmt.Fprintf(&c.out, "> %s\n", strings.Join(words, " "))
	defer c.show()
	switch words[1] {
	case "run":
		return nil
	case "leave":
		c.agent.Leave(c.now)
		return nil
	case "keys":
		return c.setKeys(words[2:])
	case "port":
		n, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		return c.port(n, words[3], words[4:])
	}
	return fmt.Errorf("unknown")
}

func (c *conversation) configure(words []string) (err error) {
	switch words[0] {
	case "topology":
		c.top, err = topology.Parse(words[1])
	case "self":
		var n topology.Node
		n, err = c.top.Lookup(words[1])
		c.self = n.ID
	case "require":
		c.config.Require = true
	case "hello":
		c.config.Hello, err = time.ParseDuration(words[1])
	case "hold":
		c.config.Damping.Hold, err = time.ParseDuration(words[1])
	case "boot":
		c.config.Boot, err = strconv.ParseUint(words[1], 10, 64)
	case "keys":
		c.keys, err = parseKeys(words[1:])
	default:
		return fmt.Errorf("unknown")
	}
	return err
}

func parseKeys(words []string) (k Keys, err error) {
	for _, w := range words {
		p := strings.Split(w, ":")
		id, err := strconv.Atoi(p[0])
		if err != nil {
			return k, err
		}
		from, err := time.ParseDuration(p[1])
		if err != nil {
			return k, err
		}
		k.List = append(k.List, Key{ID: uint8(id), From: from, Secret: []byte(strings.Repeat(p[2], 16))})
	}
	return k, nil
}

func (c *conversation) setKeys(words []string) error {
	k, err := parseKeys(words)
	if err != nil {
		return err
	}
	if c.agent != nil {
		return c.agent.SetKeys(k)
	}
	return c.listener.SetKeys(k)
}

func (c *conversation) begin() (err error) {
	c.config.Topology, c.config.Self, c.config.Keys = c.top, c.self, c.keys
	c.shown = c.top
	if int(c.self) < c.top.NumHosts() {
		c.listener, err = NewListener(ListenerConfig{Topology: c.top, Self: c.self, Keys: c.keys, MaxAge: 400 * time.Second})
	} else if c.agent, err = NewAgent(c.config); err == nil {
		c.agent.Tick(0)
	}
	if err != nil {
		return err
	}
	for _, p := range c.top.Ports(c.self) {
		c.peers[p.Index] = &speaker{port: p, session: 500, due: never}
	}
	c.ring, err = NewKeyring(c.keys)
	return err
}

// until lets time pass.
func (c *conversation) until(t time.Duration) {
	for {
		due := never
		if c.agent != nil {
			due = c.agent.Next()
		} else {
			due = c.listener.Next()
		}
		for i := range len(c.peers) {
			due = min(due, c.peers[i].due)
		}
		if due > t {
			break
		}
		c.now = max(c.now, due)
		for i := range len(c.peers) {
			if p := c.peers[i]; p.due <= c.now {
				p.due = c.now + c.config.Hello
				c.send(i, p, &message{header: header{kind: typeHello, session: p.session, heard: p.heard}}, 0, false)
			}
		}
		if c.agent != nil {
			c.agent.Tick(c.now)
		} else {
			c.listener.Tick(c.now)
		}
		c.show()
	}
	c.now = t
}

// show writes what the machine says and believes.
func (c *conversation) show() {
	var now *topology.Topology
	var r Rejects
	if c.agent != nil {
		c.agent.Send(c.hear)
		now, r = c.agent.Topology(), c.agent.Stats().Rejected
	} else {
		now, r = c.listener.Topology(), c.listener.Stats().Rejected
	}
	diff, _ := c.shown.Diff(now)
	for _, l := range diff {
		state := "down"
		if now.Live(l) {
			state = "up"
		}
		c.say("%s is %s", c.top.LinkName(l), state)
	}
	if len(diff) == 0 && now != c.shown {
		c.t.Errorf("at %v: another snapshot, but nothing has changed", c.now)
	}
	c.shown = now
	for i := range r {
		if r[i] > c.rejects[i] {
			c.say("rejected: %s", Reject(i).String())
		}
	}
	c.rejects = r
}

func (c *conversation) say(format string, args ...any) {
	fmt.Fprintf(&c.out, "%v %s\n", c.now.Round(time.Millisecond), fmt.Sprintf(format, args...))
}
