package metrics

var (
	meshPeers      = gauge("weft_mesh_peers", "Peers that the directory of a mesh names, and that the tunnel has; those lingering have lost their registration.", "state")
	meshRegistered = gauge("weft_mesh_registered", "1 if the directory has this host's registration.")
	meshFollowing  = gauge("weft_mesh_following", "1 if the directory tells what changes.")
	meshRefused    = counter("weft_mesh_registrations_refused_total", "Registrations that contradict what was known, and do not count.")
	meshRenewed    = counter("weft_mesh_keys_renewed_total", "Times that this host's key was replaced.")
)

// Mesh is what a member of a mesh says.
type Mesh struct {
	Peers, Lingering      int // Lingering of Peers
	Refused, Renewed      uint64
	Registered, Following bool
}

// Mesh writes it.
func (w Writer) Mesh(m Mesh) {
	w.put(meshPeers, float64(m.Peers-m.Lingering), "registered")
	w.put(meshPeers, float64(m.Lingering), "lingering")
	w.truth(meshRegistered, m.Registered)
	w.truth(meshFollowing, m.Following)
	w.count(meshRefused, m.Refused)
	w.count(meshRenewed, m.Renewed)
}
