package schedulerd

import (
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weft/hedera"
	"weft/internal/config"
	"weft/internal/elephant"
	"weft/internal/etcdclient"
	"weft/internal/eventlog"
	"weft/internal/service"
	"weft/topology"
	"weft/topology/graph"
	"weft/topoupdate"
)

// File is a configuration file of weft scheduler. default.yaml says what each key means.
type File struct {
	Topology       string             `yaml:"topology"`
	Listen         string             `yaml:"listen"`
	Etcd           Etcd               `yaml:"etcd"`
	Rule           string             `yaml:"rule"`
	Iterations     int                `yaml:"iterations"`
	Period         time.Duration      `yaml:"period"`
	Lifetime       time.Duration      `yaml:"lifetime"`
	Threshold      float64            `yaml:"threshold"`
	MaxFlows       int                `yaml:"max_flows"`
	Updates        Updates            `yaml:"updates"`
	Keys           []config.UpdateKey `yaml:"keys"`
	AcceptUnsigned bool               `yaml:"accept_unsigned"`
	Status         string             `yaml:"status,auto"`
	Metrics        service.Metrics    `yaml:"metrics"`
	Log            eventlog.Options   `yaml:"log"`

	fabric hedera.Fabric
	top    *topology.Topology // nil: the fabric is a graph
	listen netip.AddrPort
	tls    *tls.Config // nil without
	lines  config.Lines
}

// Updates is where the switches' topology updates are heard.
type Updates struct {
	Interface string        `yaml:"interface,auto"`
	Address   string        `yaml:"address,auto"`
	MaxAge    time.Duration `yaml:"max_age"`

	address netip.Addr
}

// off is that of an interface: nobody listens.
const off = "off"

// wanted reports whether somebody is to listen.
func (u *Updates) wanted() bool { return u.Interface != off }

// Etcd is where the schedulers' common state is.
type Etcd struct {
	Endpoints []string      `yaml:"endpoints"`
	Prefix    string        `yaml:"prefix"`
	TTL       time.Duration `yaml:"ttl"`
	CA        string        `yaml:"ca"`
	Cert      string        `yaml:"cert"`
	Key       string        `yaml:"key"`
}

//go:embed default.yaml
var defaultYAML []byte

// DefaultYAML returns a configuration file with every key, its default value and its
// meaning. The defaults are read from it.
func DefaultYAML() string { return string(defaultYAML) }

func defaults() File {
	var f File
	if _, err := config.Decode(defaultYAML, "default.yaml", &f); err != nil {
		panic(err) // a broken build
	}
	return f
}

// program is who reads the files.
const program = "weft scheduler"

// Load reads and validates a configuration file.
func Load(name string) (*File, error) {
	text, err := config.Read(name, program)
	if err != nil {
		return nil, err
	}
	return parse(text, name)
}

func parse(text []byte, name string) (*File, error) {
	f := defaults()
	var err error
	if f.lines, err = config.Decode(text, name, &f); err != nil {
		return nil, err
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	return &f, nil
}

const (
	maxFlows      = 1 << 20
	maxIterations = 1 << 20
	// maxPeriod leaves room for the periods that a placement lasts.
	maxPeriod = elephant.MaxValid / 4
)

// leastLifetime is how long placements must last for flows to keep their paths when a leader dies: until
// the next one is elected, and has told them.
func (f *File) leastLifetime() time.Duration { return f.Etcd.TTL + 3*f.Period }

// validate checks all, and reads what the file names. The first error names its key and
// line.
func (f *File) validate() (err error) {
	if f.fabric, f.top, err = readFabric(f.Topology); err != nil {
		return f.lines.Errorf("topology", "%w", err)
	}
	if f.listen, err = netip.ParseAddrPort(f.Listen); err != nil || f.listen.Port() == 0 || f.listen.Addr().IsUnspecified() {
		return f.lines.Errorf("listen", "is %q: give an address that nodes reach, and a port, such as 10.0.0.2:9341", f.Listen)
	}
	if err := f.checkEtcd(); err != nil {
		return err
	}
	if err := f.checkUpdates(); err != nil {
		return err
	}
	if !hedera.KnownRule(f.Rule) {
		return f.lines.Errorf("rule", "%q is unknown%s; it is one of %s", f.Rule, config.DidYouMean(f.Rule, hedera.Rules), strings.Join(hedera.Rules, ", "))
	}
	switch {
	case f.Iterations < 0 || f.Iterations > maxIterations:
		return f.lines.Errorf("iterations", "is %d, must be from 0 to %d", f.Iterations, maxIterations)
	case f.Period < 10*time.Millisecond || f.Period > maxPeriod:
		return f.lines.Errorf("period", "is %v, must be from 10ms to %v", f.Period, maxPeriod)
	case f.Lifetime > elephant.MaxValid: // nodes cut what is longer
		return f.lines.Errorf("lifetime", "is %v, must be at most %v", f.Lifetime, elephant.MaxValid)
	case f.Lifetime < f.leastLifetime():
		return f.lines.Errorf("lifetime", "is %v, must be at least etcd.ttl and three periods, %v, or all placements end when a leader dies; raise lifetime, up to %v, or lower etcd.ttl, which is %v, or period",
			f.Lifetime, f.leastLifetime(), elephant.MaxValid, f.Etcd.TTL)
	case !(f.Threshold > 0 && f.Threshold <= 1):
		return f.lines.Errorf("threshold", "is %v, must be a part of a link: above 0, at most 1", f.Threshold)
	case f.MaxFlows < 1 || f.MaxFlows > maxFlows:
		return f.lines.Errorf("max_flows", "is %d, must be from 1 to %d", f.MaxFlows, maxFlows)
	}
	if err := service.CheckStatusPath(f.Status); err != nil {
		return f.lines.Errorf("status", "%w", err)
	}
	if key, err := f.Metrics.Check(); err != nil {
		return f.lines.Errorf(key, "%w", err)
	}
	if key, err := f.Log.Check(); err != nil {
		return f.lines.Errorf("log."+key, "%w", err)
	}
	if len(f.Keys) == 0 {
		return f.lines.Errorf("keys", "is empty, and then anybody could place flows and report them; give the fabric's keys, which weft keygen makes")
	}
	return config.ReadUpdateKeys(f.Keys, f.lines, "keys", program)
}

// readFabric reads a topology or a graph.
func readFabric(spec string) (hedera.Fabric, *topology.Topology, error) {
	t, g, err := config.Fabric(spec)
	switch {
	case err != nil:
		return nil, nil, err
	case g != nil:
		for l := range graph.LinkID(g.NumLinks()) {
			if !(g.Link(l).Rate > 0) {
				low, high := g.Ends(l)
				return nil, nil, fmt.Errorf("the link %s - %s has no rate; give it one: what an elephant is goes by the links' rates", g.Node(low).Name, g.Node(high).Name)
			}
		}
		return hedera.NewData(g, nil), nil, nil
	}
	for l := range t.Links() {
		if !(t.Rate(l.ID) > 0) {
			return nil, nil, fmt.Errorf("%s has links without a rate; give it all rates, in Mbit/s, here and at all nodes: what an elephant is goes by them; such as fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000", t)
		}
	}
	f, err := hedera.NewClos(t)
	return f, t, err
}

func (f *File) checkUpdates() (err error) {
	u := &f.Updates
	switch {
	case !u.wanted():
		return nil
	case u.Interface == "":
		return f.lines.Errorf("updates.interface", "is empty: give the device that leads into the fabric, or off")
	case f.top == nil:
		return f.lines.Errorf("updates.interface", "is %q, but the fabric is a graph, whose switches send no updates: set it to off", u.Interface)
	}
	if u.address, err = netip.ParseAddr(u.Address); err != nil {
		return f.lines.Errorf("updates.address", "is %q: give this host's address in topology, such as %v", u.Address, f.top.Node(0).Addr)
	}
	if id, ok := f.top.ByAddr(u.address); !ok || int(id) >= f.top.NumHosts() {
		return f.lines.Errorf("updates.address", "%v is no host of topology: give this host's, such as %v", u.address, f.top.Node(0).Addr)
	}
	if u.MaxAge < time.Second || u.MaxAge > time.Hour {
		return f.lines.Errorf("updates.max_age", "is %v, must be from 1s to 1h, as the switches'", u.MaxAge)
	}
	return nil
}

func (f *File) checkEtcd() (err error) {
	e := &f.Etcd
	if err := etcdclient.CheckEndpoints(e.Endpoints); err != nil {
		return f.lines.Errorf("etcd.endpoints", "%w", err)
	}
	switch {
	case !strings.HasPrefix(e.Prefix, "/") || len(e.Prefix) > 200 || slices.Contains([]byte(e.Prefix), 0):
		return f.lines.Errorf("etcd.prefix", "is %q: it begins with a slash and has at most 200 bytes", e.Prefix)
	case e.TTL < time.Second || e.TTL > time.Minute:
		return f.lines.Errorf("etcd.ttl", "is %v, must be from 1s to 1m", e.TTL)
	case (e.Cert == "") != (e.Key == ""):
		return f.lines.Errorf("etcd.cert", "and etcd.key belong together: give both or none")
	case e.CA == "" && e.Cert == "":
		return nil
	}
	f.tls, err = etcdclient.TLS{CA: e.CA, Cert: e.Cert, Key: e.Key}.Config(func(file string) ([]byte, error) { return config.Read(file, program) })
	if wrong, ok := errors.AsType[*etcdclient.FileError](err); ok {
		return f.lines.Errorf("etcd."+wrong.Option, "%w", wrong.Err)
	}
	return err
}

// prefix is of the fabric's keys: schedulers of different fabrics do not meet.
func (f *File) prefix() string {
	return fmt.Sprintf("%s/%016x", strings.TrimRight(f.Etcd.Prefix, "/"), f.fabric.Fingerprint())
}

// keys returns the keys on a clock that began at start.
func (f *File) keys(start time.Time) topoupdate.Keys {
	return config.UpdateKeys(f.Keys, f.AcceptUnsigned, start)
}

// loop returns the configuration of a leader's loop.
func (f *File) loop(seed uint64) hedera.LoopConfig {
	c := 1000.0 // thesis §4.2.4
	if f.fabric.Hosts() <= 16 {
		c = 0.5
	}
	return hedera.LoopConfig{Fabric: f.fabric, Rule: f.Rule, MaxFlows: f.MaxFlows, Threshold: f.Threshold, Forget: f.Lifetime,
		Annealing: hedera.AnnealingConfig{Iterations: f.Iterations, C: c, Seed: seed & math.MaxInt64}}
}

// sameButNews reports whether two configurations differ in nothing that needs a restart:
// keys, and which links are down.
func (f *File) sameButNews(g *File) bool {
	strip := func(f File) File {
		f.Keys, f.AcceptUnsigned, f.fabric, f.top, f.lines, f.tls, f.Topology = nil, false, nil, nil, config.Lines{}, nil, ""
		return f
	}
	return reflect.DeepEqual(strip(*f), strip(*g)) && f.fabric.Fingerprint() == g.fabric.Fingerprint()
}
