//go:build !linux

package main

import (
	"github.com/spf13/cobra"
)

func newBenchThroughputCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "throughput",
		Short: "One TCP connection between two hosts by every way there is (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return absentf("bench throughput: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
