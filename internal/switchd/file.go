package switchd

import (
	_ "embed"
	"errors"
	"reflect"
	"strings"
	"time"

	"weft/fabric"
	"weft/internal/config"
	"weft/internal/eventlog"
	"weft/internal/scheduling"
	"weft/internal/service"
	"weft/topology"
	"weft/topoupdate"
)

// File is a configuration file of weft switch. The tags are the keys of the file. Where a
// tag says "auto", that word in the file gives the zero value. default.yaml says what each
// key means.
type File struct {
	Topology       string             `yaml:"topology"`
	Node           string             `yaml:"node,auto"`
	Ports          string             `yaml:"ports"`
	Configure      bool               `yaml:"configure"`
	Encap          string             `yaml:"encap"`
	Routes         bool               `yaml:"routes"`
	Hello          time.Duration      `yaml:"hello"`
	Multiplier     int                `yaml:"multiplier"`
	RequireHellos  bool               `yaml:"require_hellos"`
	Refresh        time.Duration      `yaml:"refresh"`
	MaxAge         time.Duration      `yaml:"max_age"`
	Damping        Damping            `yaml:"damping"`
	Meter          Meter              `yaml:"meter"`
	Extensions     []Extension        `yaml:"extensions"`
	Balance        string             `yaml:"balance"`
	Scheduler      scheduling.File    `yaml:"scheduler"`
	Keys           []config.UpdateKey `yaml:"keys"`
	AcceptUnsigned bool               `yaml:"accept_unsigned"`
	Status         string             `yaml:"status,auto"`
	Metrics        service.Metrics    `yaml:"metrics"`
	User           string             `yaml:"user"`
	Log            eventlog.Options   `yaml:"log"`

	fabric *topology.Topology
	lines  config.Lines
}

// Damping is topoupdate.Damping, except that 0 means no damping.
type Damping struct {
	Hold   time.Duration `yaml:"hold"`
	Max    time.Duration `yaml:"max"`
	Forget time.Duration `yaml:"forget"`
}

//go:embed default.yaml
var defaultYAML []byte

// DefaultYAML returns a configuration file with every key, its default value and its
// meaning. The defaults are read from it: there is no other list of the defaults.
func DefaultYAML() string { return string(defaultYAML) }

// defaults returns the configuration of an empty file.
func defaults() File {
	var f File
	if _, err := config.Decode(defaultYAML, "default.yaml", &f); err != nil {
		panic(err) // a broken build
	}
	return f
}

// Load reads and validates a configuration file.
func Load(name string) (*File, error) {
	text, err := config.Read(name, program)
	if err != nil {
		return nil, err
	}
	return parse(text, name)
}

// program is who reads the files.
const program = "weft switch"

// parse reads and validates a configuration. name is its file's in errors; files
// that it names are read.
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

// validate checks what can be checked without looking at the machine, and
// resolves topology and keys. The first error names its key and line.
func (f *File) validate() (err error) {
	if f.fabric, err = config.Topology(f.Topology); err != nil {
		return f.lines.Errorf("topology", "%w", err)
	}
	if f.Node != "" {
		if n, err := f.fabric.Lookup(f.Node); err != nil {
			return f.lines.Errorf("node", "%w", err)
		} else if n.Layer == topology.LayerHost {
			return f.lines.Errorf("node", "%s is a host; name an edge, aggregation or core switch", n.Name)
		}
	}
	if err := new(fabric.Options).Carry(f.Encap); err != nil {
		return f.lines.Errorf("encap", "%w", err)
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
	if err := config.ReadUpdateKeys(f.Keys, f.lines, "keys", program); err != nil {
		return err
	}
	if err := f.checkNumbers(); err != nil {
		return err
	}
	if err := f.checkMeter(); err != nil {
		return err
	}
	if err := f.checkExtensions(); err != nil {
		return err
	}
	if err := fabric.CheckBalance(f.Balance); err != nil {
		return f.lines.Errorf("balance", "%w", err)
	}
	if fabric.RoutingOf(f.Balance) == fabric.RoutingTwoLevel && !f.Configure {
		return f.lines.Errorf("balance", "is %s, whose tables are set up only with configure; set configure to true", f.Balance)
	}
	if err := f.checkScheduler(); err != nil {
		return err
	}
	return f.tryOut()
}

// checkNumbers refuses the zeros for which Config has defaults: they are no
// values of a file's.
func (f *File) checkNumbers() error {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"hello", f.Hello}, {"refresh", f.Refresh}, {"max_age", f.MaxAge}, {"damping.max", f.Damping.Max}, {"damping.forget", f.Damping.Forget}} {
		if d.value <= 0 {
			return f.lines.Errorf(d.key, "is %v, must be more than 0", d.value)
		}
	}
	switch {
	case f.Damping.Hold < 0:
		return f.lines.Errorf("damping.hold", "is %v, must be 0s or more", f.Damping.Hold)
	case f.Damping.Max < f.Damping.Hold:
		return f.lines.Errorf("damping.max", "is %v, less than hold, %v; raise it or lower hold", f.Damping.Max, f.Damping.Hold)
	case f.Multiplier < 2 || f.Multiplier > 255:
		return f.lines.Errorf("multiplier", "is %d, must be from 2 to 255", f.Multiplier)
	}
	return nil
}

// tryOut has the parts that know best check the rest, with any switch.
func (f *File) tryOut() error {
	c := f.config(topology.NodeID(f.fabric.NumHosts()), time.Now())
	plain := c
	plain.Routing = ""
	if _, err := plain.plan(f.fabric); err != nil {
		return f.lines.Errorf("ports", "%w", err)
	}
	if _, err := c.plan(f.fabric); err != nil {
		return f.lines.Errorf("balance", "%w", err)
	}
	_, err := topoupdate.NewAgent(c.agent(time.Now()))
	if err == nil {
		return nil
	}
	for _, field := range []struct{ name, key string }{{"Config.Hello", "hello"}, {"Config.MaxAge", "max_age"}} {
		if strings.Contains(err.Error(), field.name) {
			return f.lines.Errorf(field.key, "%w", err)
		}
	}
	return f.lines.Errorf("topology", "%w", err)
}

// keys returns the keys on a clock that began at start.
func (f *File) keys(start time.Time) topoupdate.Keys {
	return config.UpdateKeys(f.Keys, f.AcceptUnsigned, start)
}

// config returns an agent's configuration.
func (f *File) config(self topology.NodeID, start time.Time) Config {
	c := Config{
		Topology: f.fabric, Self: self, PortFormat: f.Ports, Routes: f.Routes,
		Encap: f.Encap, Routing: fabric.RoutingOf(f.Balance), Groups: fabric.GroupsOf(f.Balance),
		Hello: f.Hello, Multiplier: f.Multiplier, Require: f.RequireHellos,
		Refresh: f.Refresh, MaxAge: f.MaxAge, Keys: f.keys(start),
		Damping: topoupdate.Damping{Hold: f.Damping.Hold, Max: f.Damping.Max, Forget: f.Damping.Forget},
	}
	if c.Damping.Hold == 0 {
		c.Damping.Hold = -1 // topoupdate's word for none
	}
	return c
}

// sameButKeys reports whether two configurations differ in nothing that needs a
// restart.
func (f *File) sameButKeys(g *File) bool {
	strip := func(f File) File {
		f.Keys, f.AcceptUnsigned, f.fabric, f.lines = nil, false, nil, config.Lines{}
		return f
	}
	return reflect.DeepEqual(strip(*f), strip(*g))
}

var errNode = errors.New("no address on lo is a switch's of the fabric; name the switch, such as node: a0.2, or give lo its address")
