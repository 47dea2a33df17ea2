//go:build !linux

package main

import "github.com/spf13/cobra"

// These benchmarks, and labs, are of Linux.
func none() []string { return nil }

var appNames, appRowNames, patternNames, patternRowNames, permutationNames, faultNames, throughputCases = none, none, none, none, none, none, none

func labNames(*cobra.Command) []string   { return nil }
func labNodes(*cobra.Command) []string   { return nil }
func labTargets(*cobra.Command) []string { return nil }
