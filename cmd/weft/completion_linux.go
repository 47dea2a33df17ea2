package main

import (
	"slices"

	"github.com/spf13/cobra"

	"weft/bench/apps"
	"weft/bench/faults"
	"weft/bench/papers/thesis"
	"weft/bench/throughput"
	"weft/lab"
)

// What there is of benchmarks that run on Linux only.
var (
	appNames         = apps.AppNames
	appRowNames      = apps.RowNames
	patternRowNames  = patternsRowNames
	permutationNames = permutationRowNames
)

func faultNames() (all []string) {
	for _, f := range faults.All() {
		all = append(all, f.Name)
	}
	return all
}

func patternNames() (all []string) {
	for _, p := range thesis.Patterns() {
		all = append(all, p.Name)
	}
	return all
}

func throughputCases() (all []string) {
	for _, c := range throughput.Cases() {
		all = append(all, c.Name)
	}
	return all
}

func labNames(*cobra.Command) []string { return lab.Names() }

// labNodes are the nodes of the lab that --name says.
func labNodes(cmd *cobra.Command) []string {
	nodes, _, _ := labParts(cmd)
	return nodes
}

// labTargets are what can fail: the nodes and links of the lab.
func labTargets(cmd *cobra.Command) []string {
	nodes, links, _ := labParts(cmd)
	return slices.Concat(nodes, links)
}

func labParts(cmd *cobra.Command) (nodes, links []string, err error) {
	name := lab.DefaultName
	if f := cmd.Flags().Lookup("name"); f != nil {
		name = f.Value.String()
	}
	return lab.Parts(name)
}
