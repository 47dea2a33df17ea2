package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	plane "weft/internal/dataplane"
	"weft/internal/event"
	"weft/mesh"
	"weft/mesh/join"
	"weft/mesh/keyfile"
	"weft/mesh/open"
)

// membership is a daemon's part in a mesh. It begins when the daemon is at work, and ends before
// that ends. While weft is out of the way, it goes on.
type membership struct {
	session *join.Session
	config  join.Config
	rosters chan roster   // to the owner
	ends    chan struct{} // closed when the owner takes no more
	told    join.Status   // by the log
}

// roster is who is there, and how the owner says that the tunnel has them.
type roster struct {
	peers []mesh.Peer
	done  chan error
}

// MeshStatus is what the daemon knows of its mesh.
type MeshStatus struct {
	Directory string           `json:"directory"`
	Name      string           `json:"name"`
	Endpoints []netip.AddrPort `json:"endpoints"`
	Prefixes  []netip.Prefix   `json:"prefixes"`
	join.Status
}

// joinMesh makes the host a member, if it is to be one.
func (d *daemon) joinMesh() error {
	c := d.config
	if !c.joins() {
		return nil
	}
	o, err := c.member(d.place.name)
	if err != nil {
		return err
	}
	if c.meshKeyed() {
		if o.Keys, err = c.meshKeys(); err != nil {
			return c.lines.Errorf("udp.private_key_file", "%w", err)
		}
		o.KeepKeys = func(keys []mesh.PrivateKey) error { return keyfile.Write(c.keyFile(), keys) }
	}
	name, err := open.Parse(c.UDP.Directory)
	if err == nil {
		o.Directory, err = name.Open(open.Options{TTL: c.UDP.TTL})
	}
	if err != nil {
		return c.lines.Errorf("udp.directory", "%w", err)
	}
	if c.meshKeyed() && name.Registers() {
		if o.Identity, err = c.identity(); err != nil {
			return c.lines.Errorf("udp.private_key_file", "the host's identity is kept beside it, or in %s if that cannot be written: %w; let %s write one of both, or set STATE_DIRECTORY to a folder that it can write", stateDir(), err, keyReader)
		}
		o.Pins = c.known()
	}
	m := &membership{rosters: make(chan roster), ends: make(chan struct{})}
	o.SetPeers, o.Heard, o.Log = m.setPeers, d.peerDatagrams, slog.New(slog.DiscardHandler) // tellMesh tells
	if m.session, err = join.New(o); err != nil {
		return errors.Join(err, o.Directory.Close())
	}
	m.config, d.mesh = o, m
	return nil
}

// leaveMesh ends the membership. The caller does not hold the owner's lock.
func (d *daemon) leaveMesh() error {
	if d.mesh == nil {
		return nil
	}
	close(d.mesh.ends)
	return d.mesh.session.Close()
}

var errEnds = errors.New("the daemon ends")

// setPeers has the owner give the tunnel its peers.
func (m *membership) setPeers(peers []mesh.Peer) error {
	r := roster{peers, make(chan error, 1)}
	select {
	case m.rosters <- r:
	case <-m.ends:
		return errEnds
	}
	select {
	case err := <-r.done:
		return err
	case <-m.ends:
		return errEnds
	}
}

// peerDatagrams is how many datagrams have come from a peer.
func (d *daemon) peerDatagrams(name string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.receiver.(*hostReceiver); ok {
		if g, ok := r.dataplane.(interface{ PeerDatagrams(string) uint64 }); ok {
			return g.PeerDatagrams(name)
		}
	}
	return 0
}

// rosters is never ready where there is no mesh.
func (d *daemon) rosters() <-chan roster {
	if d.mesh == nil {
		return nil
	}
	return d.mesh.rosters
}

// setRoster gives the tunnel its peers, and leads packets to them. After an error nothing has
// changed. What the kernel does not take is tried again.
func (d *daemon) setRoster(peers []mesh.Peer) error {
	defer d.event()()
	at := d.place
	if err := at.meet(peers); err != nil {
		return err
	}
	former := d.joined
	if d.working {
		plan, err := d.config.plan(at)
		if err != nil {
			return err
		}
		if r, ok := d.receiver.(interface{ setPeers([]mesh.Peer) error }); ok {
			if err := r.setPeers(peers); err != nil {
				return err
			}
		}
		before, err := d.config.plan(d.place)
		if err == nil {
			err = d.changeSetUp(before, plan)
		}
		d.place = at
		if err != nil {
			d.complain(time.Now(), err.Error())
		}
	}
	d.joined = peers
	d.tellPeers(former)
	return nil
}

// meet takes over who is in the mesh.
func (p *place) meet(peers []mesh.Peer) error {
	p.joined, p.strict = peers, nil
	return p.findStrict()
}

// setPeers changes who is in the tunnel.
func (r *hostReceiver) setPeers(peers []mesh.Peer) error {
	g, ok := r.dataplane.(interface{ SetPeers([]plane.Peer) error })
	if !ok {
		return errors.New("this dataplane has no peers")
	}
	if err := g.SetPeers(peers); err != nil {
		return err
	}
	r.place.joined = peers
	return nil
}

// tellPeers tells who has come, and who is gone.
func (d *daemon) tellPeers(former []mesh.Peer) {
	was := make(map[string]*mesh.Peer, len(former))
	for i := range former {
		was[former[i].Name] = &former[i]
	}
	for i := range d.joined {
		p := &d.joined[i]
		q := was[p.Name]
		delete(was, p.Name)
		if q == nil || q.Endpoint != p.Endpoint || !slices.Equal(q.Prefixes, p.Prefixes) {
			d.log.Info(event.PeerUp, fmt.Sprintf("peer %s is at %v, with %v", p.Name, p.Endpoint, p.Prefixes), "peer", p.Name, "endpoint", p.Endpoint.String(), "prefixes", fmt.Sprint(p.Prefixes))
		}
	}
	for i := range former {
		if name := former[i].Name; was[name] != nil {
			d.log.Info(event.PeerGone, fmt.Sprintf("peer %s is gone", name), "peer", name)
		}
	}
}

// tellMesh tells what has changed about the directory, and whom it names in vain.
func (d *daemon) tellMesh() {
	if d.mesh == nil {
		return
	}
	was, now := d.mesh.told, d.mesh.session.Status()
	d.mesh.told = now
	for _, p := range now.Problems {
		if !slices.Contains(was.Problems, p) {
			d.log.Warn(event.PeerRefused, fmt.Sprintf("the registration of %s does not count, or not all of it: %s", p.Name, p.What), "peer", p.Name, "why", p.What)
		}
	}
	good := func(s *join.Status) bool { return s.Registered && s.Following && s.Why == "" }
	switch {
	case now.Why != "" && now.Why != was.Why:
		d.log.Warn(event.DirectoryLost, "mesh: "+now.Why, "why", now.Why)
	case good(&now) && !good(&was):
		d.log.Info(event.DirectoryFollowed, fmt.Sprintf("in the mesh as %s: %s", d.mesh.config.Name, d.config.UDP.Directory), "name", d.mesh.config.Name)
	}
	if now.Renewed > was.Renewed {
		d.log.Info(event.KeyRenewed, "this host's key in the mesh has been replaced")
	}
}

// meshStatus is nil where there is no mesh.
func (d *daemon) meshStatus() *MeshStatus {
	if d.mesh == nil {
		return nil
	}
	c := &d.mesh.config
	return &MeshStatus{d.config.UDP.Directory, c.Name, c.Endpoints, c.Prefixes, d.mesh.session.Status()}
}
