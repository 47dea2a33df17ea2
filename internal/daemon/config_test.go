package daemon

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"weft/flowcell"
	"weft/internal/config"
	"weft/policy"
	"weft/resequencer"
)

// parseText reads a configuration called f.
func parseText(text string) (*Config, error) { return parse([]byte(text), "f") }

// settings is a configuration without what it was made from.
func settings(c Config) Config {
	c.lines, c.fabric, c.auto = config.Lines{}, nil, settled{}
	return c
}

func TestDefault_isWhatIsPrinted(t *testing.T) {
	printed, err := parseText(DefaultYAML())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "{}"} {
		empty, err := parseText(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if a, b := settings(*empty), settings(*printed); !reflect.DeepEqual(a, b) {
			t.Errorf("%q gives\n%+v\nthe printed configuration\n%+v", text, a, b)
		}
	}
}

// What is documented as the default is that of the packages below.
func TestDefault_isThePackages(t *testing.T) {
	c := defaults()
	got, err := c.Resequencer.config()
	want := resequencer.Config{
		Discipline: resequencer.Presto, Hold: resequencer.DefaultHold, MinHold: resequencer.DefaultMinHold, Merge: resequencer.DefaultMerge,
		FlowPackets: resequencer.DefaultFlowPackets, FlowBytes: resequencer.DefaultFlowBytes,
		PeerPackets: resequencer.DefaultPeerPackets, PeerBytes: resequencer.DefaultPeerBytes,
		TotalPackets: resequencer.DefaultTotalPackets, TotalBytes: resequencer.DefaultTotalBytes,
		Flows: resequencer.DefaultFlows,
	}
	if err != nil || got != want {
		t.Errorf("resequencer:\n%+v, want\n%+v (%v)", got, want, err)
	}
	if o := (policy.Options{FlowcellBytes: flowcell.FlowcellBytes, FlowletGap: flowcell.FlowletGap, Samples: 2}); c.policyOptions() != o {
		t.Errorf("policy options %+v, want %+v", c.policyOptions(), o)
	}
}

// The ConfigMap of packaging/kubernetes has the defaults, but for the log, and its comments hold
// keys that are right.
func TestDefault_isTheClusters(t *testing.T) {
	b, err := os.ReadFile("../../packaging/kubernetes/host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseText(string(b))
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseText("log: {format: json}")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(settings(*c), settings(*want)) {
		t.Errorf("the cluster has\n%+v\nthe defaults are\n%+v", settings(*c), settings(*want))
	}
	uncommented := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(string(b), "$1")
	dir := t.TempDir()
	key := filepath.Join(dir, "updates.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err = parseText(strings.ReplaceAll(uncommented, "/etc/weft/updates.key", key))
	if err != nil {
		t.Fatalf("%v\n%s", err, uncommented)
	}
	if len(c.Failures.Keys) != 1 || c.Metrics.Listen == "" || !c.Metrics.Remote {
		t.Errorf("the comments' keys are not there: %+v, %+v", c.Failures.Keys, c.Metrics)
	}
}

// Every key of the types is in the printed configuration, with those of a peer
// in a comment.
func TestDefault_printsEveryKey(t *testing.T) {
	var doc map[string]any
	if err := yaml.Unmarshal(defaultYAML, &doc); err != nil {
		t.Fatal(err)
	}
	var check func(path string, in map[string]any, typ reflect.Type)
	check = func(path string, in map[string]any, typ reflect.Type) {
		for i := range typ.NumField() {
			key, _ := config.Tag(typ.Field(i))
			if key == "" {
				continue
			}
			v, ok := in[key]
			if !ok {
				t.Errorf("no %s%s", path, key)
			}
			if sub, ok := v.(map[string]any); ok {
				check(path+key+".", sub, typ.Field(i).Type)
			}
		}
	}
	check("", doc, reflect.TypeFor[Config]())
	for i := range reflect.TypeFor[Peer]().NumField() {
		key, _ := config.Tag(reflect.TypeFor[Peer]().Field(i))
		if key == "key" {
			key = "a key" // in the prose; the example has key_file
		}
		if !strings.Contains(DefaultYAML(), key) {
			t.Errorf("peers: no %s", key)
		}
	}
}

func TestParse_setsWhatIsGiven(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	other := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("o", 32)))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parseText(fmt.Sprintf(`
address: 10.1.0.2
uplink: eth0.100
gateway: 10.1.0.1
mtu: 9000
policy: "letflow"
flowlet_gap: 1ms
samples: 3
expiry: 80us
samples_only: true
tau: 5ms
groups: false
encapsulation: udp
resequencer: {discipline: sequence, hold: 5ms}
tun:
  name: spray
  addresses: [10.9.0.1/24, "fd00::1/64"]
udp:
  name: a
  peers:
    - {name: b, prefixes: [10.9.0.2/32, "fd00::2/128"], endpoint: "b.example:5740", key: %q}
    - name: c
      prefixes: [10.9.0.3/32]
      endpoint: 192.0.2.3:1
      key_file: %s
      key_id: 255
      accept_key: %s
    - {name: d, prefixes: [0.0.0.0/0], endpoint: "[2001:db8::1]:65535"}
`, key, file, other))
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Address, want.Uplink, want.Gateway, want.MTU = netip.MustParseAddr("10.1.0.2"), []string{"eth0.100"}, netip.MustParseAddr("10.1.0.1"), 9000
	want.Policy, want.FlowletGap, want.Encapsulation = "letflow", time.Millisecond, []string{EncapUDP}
	want.Samples, want.Expiry, want.SamplesOnly, want.Tau = 3, 80*time.Microsecond, true, 5*time.Millisecond
	want.Resequencer.Discipline, want.Resequencer.Hold = "sequence", 5*time.Millisecond
	want.TUN.Name, want.TUN.Addresses = "spray", []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24"), netip.MustParsePrefix("fd00::1/64")}
	secret := [32]byte([]byte(strings.Repeat("k", 32)))
	want.UDP.Name = "a"
	want.UDP.Peers = []Peer{
		{Name: "b", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/32"), netip.MustParsePrefix("fd00::2/128")}, Endpoint: "b.example:5740", Key: key, secret: secret},
		{Name: "c", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.3/32")}, Endpoint: "192.0.2.3:1", KeyFile: file, KeyID: 255, AcceptKey: other, secret: secret, accept: [32]byte([]byte(strings.Repeat("o", 32)))},
		{Name: "d", Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, Endpoint: "[2001:db8::1]:65535"},
	}
	if a, b := settings(*c), settings(want); !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%+v\nwant\n%+v", a, b)
	}
}

// Each bad value is named with its line and with what would be right.
func TestParse_bad(t *testing.T) {
	udp := "encapsulation: udp\nudp:\n  peers:\n"
	goodKey := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	peer := "name: b, prefixes: [10.9.0.2/32], endpoint: \"b:1\""
	for _, c := range []struct {
		text string
		want []string // in the message
	}{
		{"mode: gateway\npolicie: drb", []string{"f:2: policie: unknown key; did you mean policy?"}},
		{"tun:\n  queue: 2", []string{"f:2: tun.queue: unknown key; did you mean queues?"}},
		{"behind: [{host: 10.0.0.2, prefixes: []}]", []string{"f:1: behind[0].prefixes: is empty"}},
		{"behind: [{host: 10.0.0.2, prefixes: [10.244.0.1/24]}]", []string{"behind[0].prefixes[0]", "write 10.244.0.0/24"}},
		{"behind: [{host: 10.0.0.2, prefixes: [0.0.0.0/0]}]", []string{"behind[0].prefixes[0]", "cannot be behind a host"}},
		{"behind: [{host: 10.0.0.77, prefixes: [10.244.0.0/24]}]", []string{"behind[0].host: 10.0.0.77 is no host of fat-tree:k=4"}},
		{"behind: [{host: 10.0.0.2, prefixes: [10.1.0.0/25]}]", []string{"10.1.0.0/25 overlaps 10.1.0.0/24, a rack that 10.0.0.2 is not in"}},
		{"behind: [{host: 10.0.0.2, prefixes: ['fd00::/64']}]", []string{"behind[0].prefixes[0]", "different families"}},
		{"behind: [{host: auto, prefixes: ['fd00::/64']}]", []string{"no IPv6 is carried through fat-tree:k=4"}},
		{"behind: [{host: 10.0.0.2, prefixes: [10.244.0.0/24]}, {host: 10.1.0.2, prefixes: [10.244.0.0/24]}]", []string{"behind[1].prefixes[0]: 10.244.0.0/24 is given twice"}},
		{"behind: [{host: 10.0.0.2, prefixes: [10.244.0.0/16]}, {host: 10.1.0.2, prefixes: [10.244.1.0/24]}]", []string{"behind[1].prefixes[0]: 10.244.1.0/24 lies within 10.244.0.0/16 of another host"}},
		{"forwarded: false\nbehind: [{host: 10.0.0.2, prefixes: [10.244.0.0/24]}]", []string{"f:2: behind: is given, and forwarded: false"}},
		{"zzz: 1", []string{"f:1: zzz: unknown key; known: mode, topology, bgp, address"}},
		{udp + "    - {" + peer + ", endpiont: x}", []string{"f:4: udp.peers[0].endpiont", "did you mean endpoint?"}},
		{"mode: gateway\nmode: offload", []string{"f:2", "mode", "twice"}},
		{"mode: gate", []string{"f:1: mode:", `"gate" is unknown; use auto, gateway, offload`}},
		{"mode: [gateway]", []string{"f:1: mode: has a list where one value must be"}},
		{"mode:", []string{"f:1: mode: has nothing where one value must be"}},
		{"tun: weft0", []string{"f:1: tun: has one value where keys with values must be"}},
		{"udp:\n  peers: b", []string{"f:2: udp.peers: has one value where a list", "[]"}},
		{"- mode", []string{"f:1: the file has a list where keys with values must be"}},
		{"mode: *x", []string{"f:1: not YAML", "anchor"}},
		{"mode: &x gateway", []string{"f:1: mode:", "anchors and aliases"}},
		{"mode: gateway\n\tpolicy: drb", []string{"f:2: not YAML"}},
		{"mode: gateway\n---\nmode: offload", []string{"second document"}},
		{"mtu: many", []string{`f:1: mtu: "many" is not a whole number`}},
		{"mtu: 500", []string{"f:1: mtu: is 500, must be from 596 to 65535"}},
		{"mtu: 99999999999999999999", []string{"f:1: mtu:", "not a whole number"}},
		{"resequence: yes", []string{`f:1: resequence: "yes" is not one of auto, true and false`}},
		{"receivers_resequence:", []string{"f:1: receivers_resequence: has nothing where one value must be"}},
		{"mode: gateway\nresequence: true", []string{"f:2: resequence: is for mode: auto or offload"}},
		{"mode: gateway\ndatagrams: [443]", []string{"f:2: datagrams: are for mode: auto or offload"}},
		{"mode: offload\nresequence: false\ndatagrams: [443]", []string{"f:3: datagrams:", "resequence: true", "receivers_resequence: true"}},
		{"mode: offload\nresequence: true\ndatagrams: [443, 70000]", []string{`f:3: datagrams[1]: "70000" is neither a port`, "10.1.0.0/16"}},
		{"mode: offload\nresequence: true\ndatagrams: [0]", []string{`f:3: datagrams[0]: "0" is neither a port`}},
		{"mode: offload\nresequence: true\ndatagrams: \"fd00::/8\"", []string{"f:3: datagrams[0]: fd00::/8 is not IPv4"}},
		{"failures: {keys: [{id: 1, key: \"" + goodKey + "\"}]}\nmode: gateway\nscheduler: {servers: ['10.0.0.9:9341'], link_mbit: 10}", []string{"f:3: scheduler.servers: is set with mode: gateway", "use mode: offload"}},
		{"failures: {keys: [{id: 1, key: \"" + goodKey + "\"}]}\npolicy: conga\nscheduler: {servers: ['10.0.0.9:9341'], link_mbit: 10}", []string{"f:3: scheduler.servers: is set with policy: conga"}},
		{"failures: {keys: [{id: 1, key: \"" + goodKey + "\"}]}\nscheduler: {servers: ['10.0.0.9:9341']}", []string{"f:2: scheduler.link_mbit: is auto", "give the rate"}},
		{"\nflowlet_gap: 5", []string{`f:2: flowlet_gap: "5" is not a time`, "500us"}},
		{"flowlet_gap: 1h", []string{"f:1: flowlet_gap: is 1h0m0s, must be from 1µs to 10s"}},
		{"flowlet_gap: 0s", []string{"f:1: flowlet_gap: is 0s, must be"}},
		{"flowcell_bytes: 0", []string{"f:1: flowcell_bytes: is 0, must be from 1024 to 1048576"}},
		{"super_segment_bytes: 65535", []string{"f:1: super_segment_bytes: is 65535, must be from 65536 to 524280"}},
		{"super_segment_bytes: 524281", []string{"f:1: super_segment_bytes: is 524281, must be from 65536 to 524280"}},
		{"mode: gateway\nsuper_segment_bytes: 65537", []string{"f:2: super_segment_bytes: is 65537: in mode gateway", "use mode: offload"}},
		{"mode: offload\nencapsulation: srv6\nsuper_segment_bytes: 65537", []string{"f:3: super_segment_bytes:", "IPv6 header", "add ipip"}},
		{"mode: offload\npolicy: drb\nsuper_segment_bytes: 65537", []string{"f:3: super_segment_bytes:", "policy drb has no flowcells"}},
		{"congestion_control: a_name_too_long_", []string{"f:1: congestion_control:", "at most 15 bytes"}},
		{"\ncongestion_control_prefixes: [10.1.0.0/16]", []string{"f:2: congestion_control_prefixes: are given", "auto; name one, such as weft_dctcp"}},
		{"congestion_control: x\ncongestion_control_prefixes: [10.0.0.0/14, 10.1.0.1/16]", []string{"f:2: congestion_control_prefixes[1]:", "write 10.1.0.0/16"}},
		{"congestion_control: x\ncongestion_control_prefixes: [10.4.0.0/16]", []string{"f:2: congestion_control_prefixes[0]: 10.4.0.0/16 has no destination", "10.0.0.0/14"}},
		{"congestion_control: x\ncongestion_control_prefixes: [" + strings.Repeat("10.1.0.0/16,", 257) + "]", []string{"f:2: congestion_control_prefixes: has 257 entries, must have at most 256"}},
		{"policy: drbb", []string{`f:1: policy: "drbb" is unknown; use ecmp, rb, rrb, drb`}},
		{"topology: ring:n=3", []string{"f:1: topology:", "ring", "fat-tree:k=K"}},
		{"address: 10.0.0.300", []string{`f:1: address: "10.0.0.300" is not an address, such as 10.0.0.2`}},
		{"address: 10.0.0.130", []string{"f:1: address: 10.0.0.130 is no host of fat-tree:k=4", "10.0.0.2"}},
		{"address: 10.4.1.1", []string{"f:1: address:", "no host"}},
		{"gateway: fd00::1", []string{"f:1: gateway:", "not IPv4"}},
		{"uplink: a/b", []string{"f:1: uplink:", "device's name"}},
		{"uplink: weft0", []string{"weft0 is the uplink"}},
		{"mode: offload\nuplink: [p0, p0]", []string{"f:2: uplink[1]: p0 is in the list twice"}},
		{"mode: offload\nuplink: [p0, a/b]", []string{"f:2: uplink[1]:", "device's name"}},
		{"mode: gateway\nuplink: [p0, p1]", []string{"f:2: uplink: names 2 devices", "use mode: offload", "or name one device"}},
		{"mode: offload\nresequence: true\nuplink: [p0, p1]", []string{"f:3: uplink:", "resequence: false"}},
		{"mode: offload\nreceivers_resequence: true\npolicy: luopan\nuplink: [p0, p1]", []string{"f:4: uplink:", "policy luopan samples paths by one uplink", "drb or presto"}},
		{"mode: offload\npolicy: drb\ngateway: 10.0.0.1\nuplink: [p0, p1]", []string{"f:4: uplink:", "gateway is of one uplink"}},
		{"mode: offload\npolicy: drb\ntopology: bgp\nbgp: {as: 1, neighbors: [10.0.0.1=2]}\nuplink: [p0, p1]", []string{"f:5: uplink: names 2 devices, and bgp.neighbors 1"}},
		{"tun: {name: }", []string{"f:1: tun.name: has nothing"}},
		{"tun: {name: abcdefghijklmnop}", []string{"f:1: tun.name:", "1 to 15 bytes"}},
		{"tun: {queues: 0}", []string{"f:1: tun.queues: is 0, must be from 1 to 255"}},
		{"tun: {addresses: [10.9.0.1/24]}", []string{"f:1: tun.addresses: are for encapsulation: udp"}},
		{"tun: {addresses: [x]}", []string{`f:1: tun.addresses[0]: "x" is not a prefix, such as`}},
		{"mode: offload\nencapsulation: udp", []string{"f:2: encapsulation: udp passes through weft"}},
		{"encapsulation: gre", []string{"f:1: encapsulation[0]:", "ipip, srv6, udp, plain"}},
		{"encapsulation: []", []string{"f:1: encapsulation: is an empty list"}},
		{"encapsulation: [srv6, srv6]", []string{"f:1: encapsulation[1]: srv6 is in the list twice"}},
		{"encapsulation: [udp, ipip]", []string{"f:1: encapsulation[0]: udp goes to peers", "alone"}},
		{"encapsulation: plain", []string{"f:1: encapsulation[0]: plain is what is left"}},
		{"encapsulation: [ipip, plain, srv6]", []string{"f:1: encapsulation[1]: plain always works", "last"}},
		{"encapsulation: [ipip, plain]\nrequire: true", []string{"f:1: encapsulation[1]: plain is given, and require: true forbids it"}},
		{"require: true\nfailures: {probes: false}", []string{"f:1: require:", "without probes"}},
		{"encapsulation: srv6\nmtu: 1319", []string{"f:2: mtu: is 1319, must be from 1320 to 65535"}},
		{"topology: leaf-spine:leaves=2,spines=224,hosts=1\nencapsulation: srv6", []string{"f:2: encapsulation: srv6:", "use ipip"}},
		{"samples: 0", []string{"f:1: samples: is 0, must be from 1 to 36"}},
		{"samples: 37", []string{"f:1: samples: is 37, must be from 1 to 36"}},
		{"expiry: 1us", []string{"f:1: expiry: is 1µs, must be from 10µs to 10s, or auto"}},
		{"expiry: often", []string{"f:1: expiry:", "not a time"}},
		{"tau: 1ns", []string{"f:1: tau: is 1ns, must be from 1µs to 10s, or auto"}},
		{"mode: offload\npolicy: drb\ngroups: true", []string{"f:3: groups:", "does not know the group of paths of each flow", "mode: gateway"}},
		{"policy: luopan\ngroups: true", []string{"f:2: groups: policy luopan takes the path that its samples say", "remove groups"}},
		{"policy: ecmp\ngroups: true", []string{"f:2: groups: policy ecmp keeps each flow to one path"}},
		{"encapsulation: udp\nudp: {name: a, peers: [{name: b, prefixes: [10.9.0.2/32], endpoint: \"192.0.2.1:1\"}]}\ngroups: true", []string{"f:3: groups: nobody knows the paths below a tunnel"}},
		{"mode: offload\npolicy: local", []string{"f:2: policy: local", "mode: gateway, or ecmp, rb, rrb, drb, presto, flowcell-drb, auto, letflow, rand, luopan, conga"}},
		{"mode: offload\npolicy: drill", []string{"f:2: policy: drill", "mode: gateway"}},
		{"mode: offload\npolicy: local", []string{"f:2: policy: local", "mode: gateway"}},
		{"mode: offload\npolicy: drill", []string{"f:2: policy: drill", "mode: gateway"}},
		{"encapsulation: udp", []string{"udp.peers: has no peer", "udp.directory"}},
		{"resequencer:\n  discipline: fifo", []string{"f:2: resequencer.discipline:", "presto, sequence"}},
		{"resequencer: {hold: 0s}", []string{"f:1: resequencer.hold: is 0s, must be more than 0"}},
		{"resequencer: {min_hold: 1s}", []string{"f:1: resequencer.min_hold: is 1s, more than hold, 10ms"}},
		{"resequencer: {flows: -1}", []string{"f:1: resequencer.flows: is -1, must be from 1"}},
		{"udp: {listen: 5740}", []string{`f:1: udp.listen: "5740" is not an address with a port`}},
		{"udp: {paths: 257}", []string{"f:1: udp.paths: is 257, must be from 1 to 256"}},
		{udp + "    - {prefixes: [10.9.0.2/32]}", []string{`f:4: udp.peers[0].name: is ""`}},
		{udp + "    - {name: b, endpoint: \"b:1\"}", []string{"f:4: udp.peers[0].prefixes: is empty"}},
		{udp + "    - {name: b, prefixes: [10.9.0.2/24], endpoint: \"b:1\"}", []string{"f:4: udp.peers[0].prefixes[0]:", "write 10.9.0.0/24"}},
		{udp + "    - {name: b, prefixes: [10.9.0.2/32], endpoint: b}", []string{"f:4: udp.peers[0].endpoint:", "192.0.2.7:5740"}},
		{udp + "    - {name: b, prefixes: [10.9.0.2/32], endpoint: \"b:0\"}", []string{"udp.peers[0].endpoint:"}},
		{udp + "    - {" + peer + "}\n    - {" + peer + "}", []string{"f:5: udp.peers[1].name:", "name of its own"}},
		{udp + "    - {" + peer + "}\n    - {name: c, prefixes: [10.9.0.2/32], endpoint: \"c:1\"}", []string{"f:5: udp.peers[1].prefixes[0]: 10.9.0.2/32 is b's already"}},
		{udp + "    - {" + peer + ", key: c2VjcmV0}", []string{"f:4: udp.peers[0].key: is not 32 bytes in base64", "weft keygen"}},
		{udp + "    - {" + peer + ", key: " + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "}", []string{"udp.peers[0].key:"}},
		{udp + "    - {" + peer + ", key: " + goodKey + "}\n  encryption: none", []string{"f:4: udp.peers[0].key: is given, but udp.encryption is none"}},
		{"udp: {encryption: aes}", []string{"f:1: udp.encryption:", "aes-gcm", "chacha20poly1305"}},
		{udp + "    - {" + peer + ", key: a, key_file: b}", []string{"f:4: udp.peers[0].key: and key_file are both given"}},
		{udp + "    - {" + peer + ", key_file: /nonexistent/key}", []string{"f:4: udp.peers[0].key_file:", "/nonexistent/key"}},
		{udp + "    - {" + peer + ", key_id: 256}", []string{"f:4: udp.peers[0].key_id: is 256"}},
		{udp + "    - {" + peer + ", accept_key_id: 256}", []string{"f:4: udp.peers[0].accept_key_id: is 256"}},
		{udp + "    - {" + peer + ", accept_key: a2s=}", []string{"f:4: udp.peers[0].accept_key: is not 32 bytes in base64"}},
		{udp + "    - {" + peer + ", accept_key: " + goodKey + "}", []string{"f:4: udp.peers[0].accept_key: is given, but key is not"}},
		{udp + "    - {" + peer + ", key: " + goodKey + ", accept_key: " + goodKey + ", accept_key_id: 1}", []string{"f:4: udp.peers[0].accept_key_id: is 1, must be another"}},
		{udp + "    - {" + peer + ", accept_key: x, accept_key_file: y}", []string{"f:4: udp.peers[0].accept_key: and accept_key_file are both given"}},
		{"drain: 11s", []string{"f:1: drain: is 11s, must be from 0s to 10s"}},
		{"log:\n  format: xml", []string{"f:2: log.format", "text and json"}},
		{"log: {level: loud}", []string{"f:1: log.level", "debug, info, warn and error"}},
		{"user: \"\"", []string{"f:1: user: is empty"}},
		{"metrics: {listen: 9469}", []string{"f:1: metrics.listen: \"9469\" is no address and port", "127.0.0.1:9469"}},
		{"metrics:\n  listen: 0.0.0.0:9469", []string{"f:2: metrics.listen: 0.0.0.0:9469 can be reached from the network", "metrics.remote"}},
		{"status: /" + strings.Repeat("x", 107), []string{"f:1: status: is a path of 108 bytes"}},
		{"#" + strings.Repeat("x", config.MaxBytes), []string{"f: longer than"}},
	} {
		_, err := parseText(c.text)
		if err == nil {
			t.Errorf("%.60q: no error", c.text)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%.60q: error %q does not say %q", c.text, err, w)
			}
		}
	}
}

// A key is a secret, and errors are logged.
func TestParse_errorsDoNotShowKeys(t *testing.T) {
	const secret = "hunter2hunter2"
	_, err := parseText("encapsulation: udp\nudp:\n  peers:\n    - {name: b, prefixes: [10.9.0.2/32], endpoint: \"b:1\", key: " + secret + "}")
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
}

// Whatever is in a file, there is an error of its own or a configuration whose
// values are within bounds.
func FuzzParse(f *testing.F) {
	f.Add(DefaultYAML())
	f.Add("udp: {peers: [{name: b, prefixes: [10.9.0.2/32], endpoint: \"b:1\", key: x}]}")
	f.Add("mode: &a [*a, *a]\n")
	f.Add("a: {<<: b}\n? [x]\n: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseText(strings.ReplaceAll(text, "key_file", "key")) // no files are read
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without the file: %v", err)
			}
			return
		}
		if c.fabric == nil || c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) || c.UDP.Paths < 1 || len(c.UDP.Peers) > maxPeers || c.Resequencer.Hold <= 0 {
			t.Errorf("accepted: %+v", c)
		}
	})
}
