// Package event names what weft's daemons and Hosts tell of, and bounds how much they tell.
// All of it is pure: package eventlog writes.
package event

// Name is the stable name of a kind of event: what programs look for in a log. The message
// beside it is for people and may change. docs/events.md lists the names and attributes.
type Name string

// The life of a daemon.
const (
	Started       Name = "started"
	Stopping      Name = "stopping"
	Reloaded      Name = "reloaded"
	ReloadRefused Name = "reload_refused"
	Configured    Name = "configured" // something was set up, or chosen by itself
	Limited       Name = "limited"    // something is not as it was asked for
	Late          Name = "late"       // a part of the daemon does not run
	ClockSet      Name = "clock_set"
)

// How it is.
const (
	OutOfTheWay Name = "out_of_the_way" // packets go as the kernel's own routes have them
	BackAtWork  Name = "back_at_work"
	Trouble     Name = "trouble"
	Recovered   Name = "recovered"
	Repaired    Name = "repaired" // a change of others was undone
	Foreign     Name = "foreign_program"
)

// The fabric.
const (
	Rack             Name = "rack" // how packets to racks go: plain, or by which carrier
	Carrier          Name = "carrier"
	Topology         Name = "topology" // another fabric
	LinksDown        Name = "links_down"
	LinksUp          Name = "links_up"
	PathDown         Name = "path_down" // a host's probes or packets accuse a link or a path
	PathUp           Name = "path_up"
	UplinkDown       Name = "uplink_down"
	UplinkUp         Name = "uplink_up"
	UplinkRenamed    Name = "uplink_renamed"
	NeighbourDown    Name = "neighbour_down"
	NeighbourUp      Name = "neighbour_up"
	SwitchesRefused  Name = "switches_refused" // nothing that switches say is believed
	SwitchesBelieved Name = "switches_believed"
	Scheduled        Name = "scheduled" // a scheduler of elephants leads, and hears of them
	Unscheduled      Name = "unscheduled"
	Doubt            Name = "doubt" // about what switches tell by BGP
	Device           Name = "device"
)

// A mesh.
const (
	PeerUp            Name = "peer_up" // or it has another endpoint, or other prefixes
	PeerGone          Name = "peer_gone"
	PeerRefused       Name = "peer_refused" // a registration does not count, or not all of it
	DirectoryLost     Name = "directory_lost"
	DirectoryFollowed Name = "directory_followed"
	KeyRenewed        Name = "key_renewed"
)

// Suppressed tells how many events of a name were not told.
const Suppressed Name = "suppressed"

// Names lists all names.
func Names() []Name {
	return []Name{Started, Stopping, Reloaded, ReloadRefused, Configured, Limited, Late, ClockSet,
		OutOfTheWay, BackAtWork, Trouble, Recovered, Repaired, Foreign,
		Rack, Carrier, Topology, LinksDown, LinksUp, PathDown, PathUp, UplinkDown, UplinkUp, UplinkRenamed, NeighbourDown, NeighbourUp,
		SwitchesRefused, SwitchesBelieved, Scheduled, Unscheduled, Doubt, Device,
		PeerUp, PeerGone, PeerRefused, DirectoryLost, DirectoryFollowed, KeyRenewed, Suppressed}
}
