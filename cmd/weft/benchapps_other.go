//go:build !linux

package main

import (
	"github.com/spf13/cobra"
)

func newBenchAppsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "apps",
		Short: "How long real programs take: OpenMPI, Redis, PostgreSQL, nginx, iperf3, rsync (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return absentf("bench apps: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
