package daemon

import (
	_ "embed"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
	"weft/internal/config"
	"weft/internal/eventlog"
	"weft/internal/hostprog"
	"weft/internal/scheduling"
	"weft/internal/service"
	"weft/resequencer"
)

// Config is a configuration file of weft host. The tags are the keys of the file. Where a
// tag says "auto", that word in the file gives the zero value. default.yaml says what each
// key means.
type Config struct {
	Mode              string        `yaml:"mode"`
	Topology          string        `yaml:"topology"`
	BGP               BGP           `yaml:"bgp"`
	Address           netip.Addr    `yaml:"address,auto"`
	Uplink            []string      `yaml:"uplink,auto"`
	Gateway           netip.Addr    `yaml:"gateway,auto"`
	MTU               int           `yaml:"mtu,auto"`
	Policy            string        `yaml:"policy"`
	FlowcellBytes     int           `yaml:"flowcell_bytes"`
	FlowletGap        time.Duration `yaml:"flowlet_gap"`
	SuperSegmentBytes int           `yaml:"super_segment_bytes"`

	CongestionControl         string         `yaml:"congestion_control,auto"`
	CongestionControlPrefixes []netip.Prefix `yaml:"congestion_control_prefixes"`

	Samples             int           `yaml:"samples"`
	Expiry              time.Duration `yaml:"expiry,auto"`
	SamplesOnly         bool          `yaml:"samples_only"`
	Tau                 time.Duration `yaml:"tau,auto"`
	Groups              bool          `yaml:"groups"`
	Encapsulation       []string      `yaml:"encapsulation"`
	Require             bool          `yaml:"require"`
	ReceiversResequence config.Choice `yaml:"receivers_resequence"`
	Resequence          config.Choice `yaml:"resequence"`
	Datagrams           []string      `yaml:"datagrams"`
	Forwarded           bool          `yaml:"forwarded"`
	Behind              []Behind      `yaml:"behind"`
	Resequencer         Resequencer   `yaml:"resequencer"`
	Failures            Failures      `yaml:"failures"`
	QCN                 QCN           `yaml:"qcn"`

	Scheduler scheduling.File `yaml:"scheduler"`

	TUN    TUN           `yaml:"tun"`
	UDP    UDP           `yaml:"udp"`
	Drain  time.Duration `yaml:"drain"`
	Status string        `yaml:"status,auto"`

	Metrics service.Metrics `yaml:"metrics"`

	User string           `yaml:"user"`
	Log  eventlog.Options `yaml:"log"`

	views
	inGraph []hostprog.Behind // what the graph says is behind hosts
	lines   config.Lines
	by      string // of Encapsulation, the one in use; "" for the first
	auto    settled
	order   config.Choice // whether a daemon that has begun restores the order in mode offload; Auto before
}

// Resequencer is the section "resequencer": see resequencer.Config.
type Resequencer struct {
	Discipline   string        `yaml:"discipline"`
	Hold         time.Duration `yaml:"hold"`
	MinHold      time.Duration `yaml:"min_hold"`
	Merge        time.Duration `yaml:"merge"`
	FlowPackets  int           `yaml:"flow_packets"`
	FlowBytes    int           `yaml:"flow_bytes"`
	PeerPackets  int           `yaml:"peer_packets"`
	PeerBytes    int           `yaml:"peer_bytes"`
	TotalPackets int           `yaml:"total_packets"`
	TotalBytes   int           `yaml:"total_bytes"`
	Flows        int           `yaml:"flows"`
}

// BGP is the section "bgp": the host's own switches, which tell what the fabric is.
type BGP struct {
	AS           int      `yaml:"as"`
	Neighbors    []string `yaml:"neighbors"` // session.ParseNeighbor
	PasswordFile string   `yaml:"password_file"`
	SIDBlock     string   `yaml:"sid_block"` // "" without SIDs
}

// TUN is the section "tun": the interface between the kernel and weft.
type TUN struct {
	Name      string         `yaml:"name"`
	Queues    int            `yaml:"queues"`
	Addresses []netip.Prefix `yaml:"addresses"`
}

// UDP is the section "udp": the tunnel.
type UDP struct {
	Name         string         `yaml:"name,auto"`
	Listen       netip.AddrPort `yaml:"listen"`
	Paths        int            `yaml:"paths"`
	ZeroChecksum bool           `yaml:"zero_checksum"`
	Encryption   string         `yaml:"encryption"` // none, or the name of an encap.UDPCipher
	Peers        []Peer         `yaml:"peers"`

	// Directory says who the peers are, in place of Peers: see open.Name; Off for none. The
	// rest is for it.
	Directory      string         `yaml:"directory"`
	Prefixes       []netip.Prefix `yaml:"prefixes"`
	Within         []netip.Prefix `yaml:"within"`
	Endpoint       netip.AddrPort `yaml:"endpoint,auto"`
	PrivateKeyFile string         `yaml:"private_key_file,auto"`
	Renew          time.Duration  `yaml:"renew"`
	Linger         time.Duration  `yaml:"linger"`
	TTL            time.Duration  `yaml:"ttl"`
}

// Peer is the other end of the tunnel.
type Peer struct {
	Name     string         `yaml:"name"`
	Prefixes []netip.Prefix `yaml:"prefixes"`
	Endpoint string         `yaml:"endpoint"` // host:port
	Key      string         `yaml:"key"`      // base64
	KeyFile  string         `yaml:"key_file"`
	KeyID    int            `yaml:"key_id"`

	AcceptKey     string `yaml:"accept_key"` // the same of a key that is accepted besides
	AcceptKeyFile string `yaml:"accept_key_file"`
	AcceptKeyID   int    `yaml:"accept_key_id"`

	secret [32]byte // of Key or KeyFile; all zeros without
	accept [32]byte // of AcceptKey or AcceptKeyFile
	cipher encap.UDPCipher
}

// The values of Mode and Encapsulation.
const (
	ModeAuto    = "auto"
	ModeGateway = "gateway"
	ModeOffload = "offload"
	EncapIPIP   = "ipip"
	EncapSRv6   = "srv6"
	EncapUDP    = "udp"
	EncapPlain  = "plain" // none: as the kernel's own routes have it

	// TopologyBGP is the Topology of a host that learns the fabric from its switches.
	TopologyBGP = "bgp"
)

//go:embed default.yaml
var defaultYAML []byte

// DefaultYAML returns a configuration file with every key, its default value and its
// meaning. The defaults are read from it: there is no other list of the defaults.
func DefaultYAML() string { return string(defaultYAML) }

// defaults returns the configuration of an empty file.
func defaults() Config {
	var c Config
	if _, err := config.Decode(defaultYAML, "default.yaml", &c); err != nil {
		panic(err) // a broken build
	}
	c.lines = config.Of("default.yaml")
	return c
}

// encapsulation is the one in use.
func (c *Config) encapsulation() string {
	if c.by != "" {
		return c.by
	}
	return c.Encapsulation[0]
}

// over returns the configuration with another of its encapsulations in use, or with the
// first if that is not one of them.
func (c *Config) over(encapsulation string) *Config {
	if encapsulation == c.encapsulation() {
		return c
	}
	d := *c
	d.by = ""
	if slices.Contains(c.Encapsulation, encapsulation) {
		d.by = encapsulation
	}
	return &d
}

// carried lists the encapsulations that have a carrier, in the order of preference.
func (c *Config) carried() (list []string) {
	for _, e := range c.Encapsulation {
		if e == EncapIPIP || e == EncapSRv6 {
			list = append(list, e)
		}
	}
	return list
}

// tunnels reports whether the fabric is a tunnel's to peers, not a topology's.
func (c *Config) tunnels() bool { return c.encapsulation() == EncapUDP }

// proves reports whether a carrier is used only towards racks for which probes have
// proved it.
func (c *Config) proves() bool { return !c.tunnels() && c.Failures.Probes && !c.Require }

// carrier is what takes packets by their paths, other than a tunnel.
func (c *Config) carrier() encap.Carrier {
	if c.encapsulation() == EncapSRv6 {
		return encap.CarrierSRv6
	}
	return encap.CarrierIPIP
}

// toSIDs reports whether packets go to the SIDs of a graph.
func (c *Config) toSIDs() bool {
	return c.carrier() == encap.CarrierSRv6 && c.fabric != nil && !c.fabric.Computed()
}

func (r Resequencer) config() (resequencer.Config, error) {
	d, err := resequencer.ParseDiscipline(r.Discipline)
	return resequencer.Config{
		Discipline: d, Hold: r.Hold, MinHold: r.MinHold, Merge: r.Merge,
		FlowPackets: r.FlowPackets, FlowBytes: r.FlowBytes,
		PeerPackets: r.PeerPackets, PeerBytes: r.PeerBytes,
		TotalPackets: r.TotalPackets, TotalBytes: r.TotalBytes,
		Flows: r.Flows,
	}, err
}
