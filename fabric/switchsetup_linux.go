package fabric

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// SwitchSetup keeps a switch as Apply has configured it, except for its routes: see Routes.
// Its methods must be called by threads in the network namespace of ApplySwitch, as are all
// threads of a process that does not change it. Only the methods that return counters are
// safe for concurrent use.
type SwitchSetup struct {
	plan     NodePlan
	now      NodePlan // without the ports that have no device
	h        *netlink.Handle
	decap    string         // Report.Decap
	ports    map[string]int // interface indexes of the ports when they were last looked at
	links    []netlink.Link // the same
	programs map[string]*kernel.PortProgram
}

// The maps of the programs that Repair keeps.
var setupMaps = map[kernel.Filter][]string{
	kernel.DecapFilter:  {kernel.CountersMap, decapMapBouncing},
	kernel.EdgeFilter:   {kernel.CountersMap, edgeMapHosts},
	kernel.ClassFilter:  nil,
	kernel.SuffixFilter: nil,
}

// ApplySwitch is Apply and keeps open what Repair needs.
func ApplySwitch(p NodePlan) (*SwitchSetup, Report, error) {
	report, err := Apply(p)
	if err != nil {
		return nil, report, err
	}
	s, err := newSwitchSetup(p, report.Decap)
	if err != nil {
		return nil, report, err
	}
	for place, maps := range setupMaps {
		program, err := kernel.AttachedProgram(s.h, s.links, place, maps...)
		if err != nil {
			s.Close()
			return nil, report, fmt.Errorf("configure %s: %s: %w", p.Node, place.Name, err)
		}
		if program != nil {
			s.programs[place.Name] = program
		}
	}
	return s, report, nil
}

// InheritSwitch takes over the set-up of the program that has executed this one, from the
// result of Descriptors. It needs CAP_NET_ADMIN to repair it, and nothing else.
func InheritSwitch(p NodePlan, descriptors string) (*SwitchSetup, error) {
	words := strings.Fields(descriptors)
	if len(words) == 0 {
		return nil, errors.New("switch set-up: no descriptors were passed on")
	}
	s, err := newSwitchSetup(p, strings.TrimPrefix(words[0], "by="))
	if err != nil {
		return nil, err
	}
	for place := range setupMaps {
		program, err := kernel.OpenDescriptors(place, words[1:])
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("switch set-up: %w", err)
		}
		if program != nil {
			s.programs[place.Name] = program
		}
	}
	return s, nil
}

func newSwitchSetup(p NodePlan, decap string) (*SwitchSetup, error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(err)
	}
	s := &SwitchSetup{plan: p, now: p, h: h, decap: decap, programs: make(map[string]*kernel.PortProgram)}
	all, err := kernel.Dumped(h.LinkList)
	if err != nil {
		h.Close()
		return nil, kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	s.find(all)
	return s, nil
}

// Descriptors returns new file descriptors, and the rest that InheritSwitch needs in
// a program that this process executes, as one line.
func (s *SwitchSetup) Descriptors() (string, error) {
	words := []string{"by=" + s.decap}
	for _, program := range s.programs {
		more, err := program.Descriptors()
		if err != nil {
			return "", fmt.Errorf("switch set-up: %w", err)
		}
		words = append(words, more...)
	}
	return strings.Join(words, " "), nil
}

// Balanced leaves the setting to a Balance that it must have otherwise than planned.
func (s *SwitchSetup) Balanced() { s.plan, s.now = s.plan.Balanced(), s.now.Balanced() }

// Close closes what the set-up holds open. The set-up stays in force.
func (s *SwitchSetup) Close() error {
	var err error
	for _, program := range s.programs {
		err = errors.Join(err, program.Close())
	}
	s.h.Close()
	return err
}

// Repair compares the kernel with the plan and mends what differs: the state of new devices
// of ports, addresses, settings, programs with their tables, the rules of virtual spines.
// It returns a sentence for each thing it has mended. After an error it goes on with the
// rest. An error that a person must mend names the command.
//
// A port that somebody has set down stays down: that is how a link is taken out of
// service. A device that is new at a port is set up.
func (s *SwitchSetup) Repair() (mended []string, err error) {
	all, err := kernel.Dumped(s.h.LinkList)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("list the links: %w", err))
	}
	before := s.ports
	missing := s.find(all)
	s.now = s.plan.Without(missing...)
	var errs []error
	for _, name := range missing {
		errs = append(errs, s.noDevice(name, before[name], all))
	}
	for _, port := range s.links {
		a := port.Attrs()
		if a.Flags&net.FlagUp != 0 {
			continue
		}
		if before[a.Name] == a.Index {
			errs = append(errs, fmt.Errorf("port %s has been set down and stays so until: ip link set %s up", a.Name, a.Name))
			continue
		}
		if e := s.h.LinkSetUp(port); e != nil {
			errs = append(errs, kernel.Explain(fmt.Errorf("bring %s up: %w", a.Name, e)))
			delete(s.ports, a.Name) // it is still new
			continue
		}
		mended = append(mended, fmt.Sprintf("set port %s up, which has a new device", a.Name))
	}
	r := Report{Decap: s.decap}
	r.repair("set lo up", func() (int, error) {
		lo, err := kernel.Links(s.h, []string{"lo"})
		if err != nil {
			return 0, err
		}
		return setUp(s.h, lo[0])
	}, &errs)
	r.repair("put back addresses of "+s.plan.Device, func() (int, error) { return setAddress(s.h, s.now) }, &errs)
	r.repair("put back rules", func() (int, error) { return syncRules(s.h, s.now.rules(s.decap == DecapIPIP)) }, &errs)
	r.repair("put back MPLS routes", func() (int, error) { return r.syncMPLS(s.h, s.links, s.now) }, &errs)
	if s.decap == DecapIPIP {
		r.repair("put back ipip devices", func() (int, error) { return addIPIP(s.h, s.plan.Bouncing) }, &errs)
	}
	for _, place := range []kernel.Filter{kernel.DecapFilter, kernel.EdgeFilter} {
		r.repair("put back entries in the tables of "+place.Name, func() (int, error) { return s.fill(place) }, &errs)
	}
	did, e := s.RepairSettings()
	return append(append(mended, r.Did...), did...), errors.Join(append(errs, e)...)
}

// RepairSettings is Repair for the settings and the programs alone. Call it often: the
// kernel does not tell when these change, and looking is cheap.
func (s *SwitchSetup) RepairSettings() (mended []string, err error) {
	var r Report
	if _, err = r.SetSysctls(s.now.Sysctls); errors.Is(err, kernel.ErrNoSetting) {
		err = nil // a device has gone just now
	}
	mended = r.Did
	for _, program := range s.programs {
		did, e := program.Repair(s.h, s.links)
		mended, err = append(mended, did...), errors.Join(err, e)
	}
	return mended, err
}

// repair is did after a step that may fail.
func (r *Report) repair(what string, step func() (int, error), errs *[]error) {
	n, err := step()
	r.Add(n, what)
	if err != nil {
		*errs = append(*errs, err)
	}
}

// find finds the ports' devices among all, and returns the ports that have none.
func (s *SwitchSetup) find(all []netlink.Link) (missing []string) {
	s.ports, s.links = make(map[string]int, len(s.plan.Ports)), nil
	byName := make(map[string]netlink.Link, len(all))
	for _, link := range all {
		byName[link.Attrs().Name] = link
	}
	for _, p := range s.plan.Ports {
		link := byName[p.Name]
		if link == nil {
			missing = append(missing, p.Name)
			continue
		}
		s.ports[p.Name] = link.Attrs().Index
		s.links = append(s.links, link)
	}
	return missing
}

// noDevice says that a port has no device, and what became of the one that it had.
func (s *SwitchSetup) noDevice(port string, had int, all []netlink.Link) error {
	for _, link := range all {
		if a := link.Attrs(); had != 0 && a.Index == had {
			s.ports[port] = had // not a new one when it is back
			return fmt.Errorf("port %s has no device: it is called %s now, and is the port's again after: ip link set %s name %s", port, a.Name, a.Name, port)
		}
	}
	return fmt.Errorf("port %s has no device; it is used as soon as there is one of that name", port)
}

// fill puts into a program's table what is planned.
func (s *SwitchSetup) fill(place kernel.Filter) (changed int, err error) {
	program := s.programs[place.Name]
	if program == nil {
		return 0, nil
	}
	if place == kernel.DecapFilter {
		return kernel.SyncMap(program.Maps[decapMapBouncing], bouncingEntries(s.plan.marks()))
	}
	want, err := edgeEntries(s.now.Gate, s.ports)
	if err != nil {
		return 0, err
	}
	return kernel.SyncMap(program.Maps[edgeMapHosts], want)
}

// Counters counts the packets that a program decapsulates by outcome; nil if there is no
// program.
func (s *SwitchSetup) Counters() (*Counters, error) {
	program := s.programs[kernel.DecapFilter.Name]
	if program == nil {
		return nil, nil
	}
	var c Counters
	return &c, program.Counters(c.sums()...)
}

// EdgeCounters is Counters for the program where labels begin and end.
func (s *SwitchSetup) EdgeCounters() (*EdgeCounters, error) {
	program := s.programs[kernel.EdgeFilter.Name]
	if program == nil {
		return nil, nil
	}
	var c EdgeCounters
	return &c, program.Counters(c.sums()...)
}

// LabelCounters counts packets with labels in IPv6 by outcome; nil if there are no routes
// of labels.
func (s *SwitchSetup) LabelCounters() (*LabelCounters, error) {
	if len(s.plan.SIDs) == 0 {
		return nil, nil
	}
	return ReadLabelCounters()
}
