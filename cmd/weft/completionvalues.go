package main

import (
	"strings"

	"github.com/spf13/cobra"

	"weft/bench/asymmetry"
	"weft/bench/failover"
	"weft/bench/fct"
	"weft/bench/papers"
	"weft/bench/reorder"
	"weft/bench/scenario"
	"weft/bench/sim/spray"
	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/fabric"
	"weft/internal/capture"
	"weft/internal/config"
	"weft/internal/daemon"
	"weft/policy"
	"weft/topology/graph"
)

var (
	carriers     = words("ipip", "srv6")
	topologies   = words("fat-tree:k=", "leaf-spine:leaves=4,spines=4,hosts=4", "vl2:d0=2,d1=4,d2=4")
	experimental = andAll(each(experiments, func(e papers.Experiment) string { return e.Name }))
	fctRowValues = andAll(each(fct.Rows, func(r fct.Row) string { return r.Name }))
)

// flagValues are those of flags by their names, or by their command and name where the name
// means several things. TestCompletion_everyFlag finds a flag that takes a value and is not
// completed by what its help says.
var flagValues = map[string]completion{
	"topology": {values: topologies, files: true},
	"socket":   {files: true},
	"config":   {files: true},
	"plot":     {files: true},
	"policy":   {values: ofList(policy.Names)},
	"policies": {values: andAll(ofList(policy.Names)), list: true},
	"encap":    {values: carriers},
	"fabric":   {values: words("auto", "netns", "memory")},
	"name":     {values: labNames},
	"from":     {values: hostsOf("topology")},
	"to":       {values: hostsOf("topology")},
	"shard":    {free: true},
	"host":     {free: true},
	"port":     {free: true},
	"flow":     {free: true},
	"kind":     {values: ofList(capture.KindNames), list: true},
	"progress": {values: words(progressModes...)},

	"listen":      {files: true},
	"live-listen": {files: true},

	"tunnel-port": {free: true},
	"interface":   {values: ofList(devices), list: true},
	"node":        {values: nodesOf("topology")},

	"bench apps --apps":            {values: ofList(appNames), list: true},
	"bench apps --rows":            {values: andAll(ofList(appRowNames)), list: true},
	"bench asymmetry --scenarios":  {values: each(asymmetry.Scenarios, func(s asymmetry.Scenario) string { return s.Name }), list: true},
	"bench failover --kinds":       {values: words(failover.Kinds...), list: true},
	"bench failover --agents":      {values: words("true", "false", "both")},
	"bench faults --only":          {values: ofList(faultNames), list: true},
	"bench fct --workload":         {values: ofList(workload.CDFNames)},
	"bench fct --traffic":          {values: trafficKinds},
	"bench fct --failure":          {values: words("symmetric", "link-down", "slow-link")},
	"bench fct --rows":             {values: fctRowValues, list: true},
	"bench fct --loads":            {free: true},
	"bench mesh --encryption":      {values: words("gmac", "aes-gcm", "chacha20poly1305")},
	"bench patterns --append":      {files: true},
	"bench patterns --patterns":    {values: ofList(patternNames)},
	"bench patterns --rows":        {values: ofList(patternRowNames), list: true},
	"bench permutation --families": {values: words("4", "6"), list: true},
	"bench permutation --routing":  {values: words("static", "bgp")},
	"bench permutation --rows":     {values: ofList(permutationNames), list: true},
	"bench resequencer --cases":    {values: each(reorder.Cases, func(c reorder.Case) string { return c.Name }), list: true},
	"bench resequencer --impls":    {values: each(reorder.Impls, func(i reorder.Impl) string { return i.Name }), list: true},
	"bench throughput --append":    {files: true},
	"bench throughput --cases":     {values: ofList(throughputCases), list: true},
	"conns --to":                   {values: hostsHere},
	"demo --policies":              {values: andAll(each(testbed.Rows, func(r testbed.Row) string { return r.Name })), list: true},
	"demo --report":                {files: true},
	"demo --resequencer":           {values: words("presto", "sequence", "juggler", "off")},
	"doctor --ssh":                 {free: true},
	"doctor --ssh-command":         {free: true},
	"lab up --balance":             {values: words("routes", "ecmp", "two-level", "classifier", "rb", "rrb", "drb", "letflow", "drill", "conga", "luopan")},
	"lab up --red":                 {free: true},
	"lab up --red-action":          {values: words("drop", "mark")},
	"lab up --routing":             {values: words("static", "two-level", "bgp")},
	"paths --encap":                {values: words("ipip", "srv6", "mpls")},
	"plan --encap":                 {values: words("ipip", "srv6", "mpls")},
	"plan --for":                   {values: words(planLanguages...)},
	"plan --port-format":           {values: words("p%d", "swp%d", "eth%d")},
	"plan --routing":               {values: ofList(fabric.Routings)},
	"sim fct --failure":            {values: words("symmetric", "link-down", "slow-link")},
	"sim fct --rows":               {values: fctRowValues, list: true},
	"sim permutation --policy":     {values: func(cmd *cobra.Command) []string { return append(policy.Names(), spray.SwitchNames()...) }},
	"topology from-bgp --as":       {free: true},
	"topology from-bgp --neighbor": {free: true},
}

// arguments are those of commands.
var arguments = map[string]completion{
	"bench scenarios": {values: ofList(scenario.Names)},
	"lab exec":        {values: labNodes},
	"lab fail":        {values: labTargets},
	"lab heal":        {values: labTargets},
	"schema":          {values: ofList(schemaNames)},
	"sim decide":      {values: experimental},
	"sim mutants":     {values: experimental},
	"sim report":      {values: experimental},
	"sim run":         {values: experimental, files: true},
	"sim merge":       {dirs: true},
}

func trafficKinds(*cobra.Command) (all []string) {
	for _, line := range fct.TrafficHelp() {
		kind, _, _ := strings.Cut(line[0], "(")
		all = append(all, kind)
	}
	return all
}

// maxCompleted is how many names of nodes a shell gets at most: nobody reads more.
const maxCompleted = 2000

// nodesOf are the nodes of the fabric that a flag names.
func nodesOf(flag string) values { return nodeValues(flag, false) }

// hostsOf are its hosts.
func hostsOf(flag string) values { return nodeValues(flag, true) }

func nodeValues(flag string, hosts bool) values {
	return func(cmd *cobra.Command) []string {
		f := cmd.Flags().Lookup(flag)
		if f == nil {
			return nil
		}
		return fabricNodes(f.Value.String(), hosts)
	}
}

// hostsHere are the hosts of the fabric that this machine's daemon is configured with.
func hostsHere(*cobra.Command) []string {
	c, err := daemon.Load(defaultHostConfig)
	if err != nil {
		return nil // who may not read it has no names
	}
	return fabricNodes(c.Topology, true)
}

// fabricNodes are the names of a fabric's nodes; none if there is no such fabric.
func fabricNodes(spec string, hosts bool) (all []string) {
	t, g, err := config.Fabric(spec)
	switch {
	case err != nil:
	case g != nil:
		for n := range g.NumNodes() {
			if node := g.Node(graph.NodeID(n)); (!hosts || node.Tier == 0) && len(all) < maxCompleted {
				all = append(all, node.Name)
			}
		}
	default:
		nodes := t.Nodes()
		if hosts {
			nodes = t.Hosts()
		}
		for n := range nodes {
			if all = append(all, n.Name); len(all) == maxCompleted {
				break
			}
		}
	}
	return all
}
