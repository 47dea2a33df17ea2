package daemon

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"weft/internal/config"
	"weft/internal/service"
	"weft/topology"
)

// Fit is how a configuration fits the machine that reads it.
type Fit struct {
	User     service.Account
	NoUser   error // the user does not exist
	Address  netip.Addr
	Uplinks  []FitUplink
	Sprays   bool // packets of one connection take several paths
	RateMbit float64
	Misfits  []Misfit
	Secrets  []Secret
}

// FitUplink is a device that leads into the fabric, and the switch behind it.
type FitUplink struct {
	Name    string
	Gateway netip.Addr // not valid if the fabric is on the link
	Switch  string     // its name in the topology, "" if that does not say
}

// Misfit is a key that names what the machine does not have.
type Misfit struct {
	Key  string // "" if it is none in particular
	Err  error
	Auto bool // the configuration has it found out
}

// Secret is a key and the file that it is in, "" for none.
type Secret struct {
	File string
	From time.Duration // until it is in force
}

// Fit looks at the machine as Run does before it changes anything.
func (c *Config) Fit(ctx context.Context) (f Fit) {
	if f.User, f.NoUser = service.LookUp(c.User); f.NoUser != nil {
		f.NoUser = c.lines.Errorf("user", "%w", f.NoUser)
	}
	for _, k := range c.Failures.Keys {
		f.Secrets = append(f.Secrets, secretOf(k))
	}
	for _, p := range c.UDP.Peers {
		f.Secrets = append(f.Secrets, Secret{File: p.KeyFile})
		if p.AcceptKeyFile != "" {
			f.Secrets = append(f.Secrets, Secret{File: p.AcceptKeyFile})
		}
	}
	if c.UDP.PrivateKeyFile != "" {
		f.Secrets = append(f.Secrets, Secret{File: c.UDP.PrivateKeyFile})
	}
	f.Sprays = c.policy().Sprays()
	if c.learns() { // the rest is known when switches have told
		for _, name := range c.Uplink {
			f.Uplinks = append(f.Uplinks, FitUplink{Name: name})
		}
		return f
	}
	p, err := c.find(ctx)
	if err != nil {
		key := keyOf(err)
		f.Misfits = append(f.Misfits, Misfit{key, err, key == "address" && !c.Address.IsValid() || key == "uplink" && len(c.Uplink) == 0})
	}
	f.Address = p.address
	for i, u := range p.all() {
		if u.Name != "" {
			up := FitUplink{Name: u.Name, Gateway: u.Gateway}
			f.Uplinks = append(f.Uplinks, c.behindUplink(up, i, p.address, &f))
		}
	}
	return f
}

// behindUplink adds what the topology says of an uplink.
func (c *Config) behindUplink(u FitUplink, i int, self netip.Addr, f *Fit) FitUplink {
	if c.fabric == nil || !self.IsValid() {
		return u
	}
	if id, ok := c.fabric.ByAddr(self); ok && c.fabric.Computed() && c.fabric.Node(id).Layer == topology.LayerHost {
		if ports := c.fabric.Ports(id); i < len(ports) {
			u.Switch = c.fabric.Node(ports[i].Peer).Name
			f.RateMbit = c.fabric.Rate(ports[i].Link)
		}
	}
	return u
}

func secretOf(k config.UpdateKey) Secret {
	s := Secret{File: k.KeyFile}
	if !k.From.IsZero() {
		s.From = time.Until(k.From)
	}
	return s
}

// keyOf is the key that an error of Lines.Errorf is about, "" if it is not one.
func keyOf(err error) string {
	var e config.KeyError
	errors.As(err, &e)
	return e.Key
}
